"""python dask_build.py CAPACITY COLUMN FILTER PARQUET...: builds a filter, and asks it."""

import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import koel
import pyarrow.compute as pc
import pyarrow.parquet as pq
from dask import delayed
from distributed import Client, as_completed


def split(plan: koel.FilterPlan, groups: int, path: str, column: str) -> list[Any]:
    # The parts of one file, by group of segments, and the number of its keys.
    keys = pq.read_table(path, columns=[column])[column]
    parts = plan.split(keys)
    shares = [[it for it in parts if it[0] % groups == group] for group in range(groups)]
    return [*shares, len(keys) - keys.null_count]


def build(plan: koel.FilterPlan, shares: list[Any]) -> list[tuple[int, bytes]]:
    return plan.build(part for share in shares for part in share)


def build_filter(client: Client, plan: Any, paths: list[str], column: str, target: str) -> int:
    groups = min(plan.segments, 4 * sum(client.nthreads().values()))
    splits = [delayed(split, nout=groups + 1)(plan, groups, path, column) for path in paths]
    *shares, counts = zip(*[list(of_file) for of_file in splits])
    builds = [delayed(build)(plan, list(share)) for share in shares]
    *pieces, keys = client.compute([*builds, delayed(sum)(list(counts))])

    def arriving() -> Iterator[tuple[int, bytes]]:
        for future in as_completed(pieces):
            yield from future.result()
            future.release()

    return plan.save(arriving(), target, keys=keys.result())


@cache
def opened(path: str) -> koel.CuckooFilter:
    """The filter, mapped once for each worker. All workers of a machine share its pages."""
    return koel.CuckooFilter.open(path, mmap=True)


def known(filter_path: str, path: str, column: str) -> int:
    keys = pq.read_table(path, columns=[column])[column]
    return pc.sum(opened(filter_path).contains_many(keys)).as_py() or 0


if __name__ == "__main__":
    capacity, column, target, *paths = sys.argv[1:]
    with Client() as client:
        count = build_filter(client, koel.FilterPlan(int(capacity)), paths, column, target)
        found = client.map(partial(known, target, column=column), paths)
        print(f"{count} keys went in, {sum(client.gather(found))} are known")
