"""Builds a filter in shards, one for each process, and merges them.

The shards are built alike, with the capacity of the whole, so that they can be merged.
"""

import multiprocessing

import koel
import numpy as np

CAPACITY = 200_000


def build_shard(number: int) -> koel.CuckooFilter:
    shard = koel.CuckooFilter(CAPACITY, error_rate=0.001)
    shard.update(np.arange(number * 50_000, (number + 1) * 50_000))
    # The filter returns to the parent process as a pickle, which is the bytes of its file.
    return shard


if __name__ == "__main__":
    whole = koel.CuckooFilter(CAPACITY, error_rate=0.001)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for shard in pool.imap_unordered(build_shard, range(4)):
            whole |= shard
    assert whole.contains_many(np.arange(CAPACITY)).all()
    assert not whole.contains_many(np.arange(CAPACITY, 2 * CAPACITY)).mean() > 0.002
    print(whole)
