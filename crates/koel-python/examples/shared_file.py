"""Worker processes share one filter through a memory-mapped file.

Opening takes constant time, and all processes use the same pages of memory.
"""

import multiprocessing
import tempfile
from pathlib import Path

import koel
import numpy as np


def count_known(job: tuple[Path, int]) -> int:
    path, first = job
    known = koel.CuckooFilter.open(path, mmap=True)
    return int(known.contains_many(np.arange(first, first + 50_000)).sum())


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp()) / "known.koel"
    known = koel.CuckooFilter(100_000, error_rate=0.001)
    known.update(np.arange(100_000), multi=True)
    known.save(path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.map(count_known, [(path, first) for first in range(0, 200_000, 50_000)])
    print("known keys of four workers:", counts)
    assert counts[:2] == [50_000, 50_000] and sum(counts[2:]) < 300
