"""Builds one filter from Parquet files with Dask, and asks it from the tasks of a job.

python dask_build.py CAPACITY COLUMN FILTER PARQUET...
"""

import functools
import sys
from collections.abc import Iterator

import koel
import pyarrow.compute as pc
import pyarrow.parquet as pq
from dask import delayed
from distributed import Client, as_completed

Parts = list[tuple[int, bytes]]


def split(plan: koel.FilterPlan, groups: int, path: str, column: str) -> list[Parts | int]:
    """The parts of one file, by group of segments, and the number of its keys."""
    keys = pq.read_table(path, columns=[column])[column]
    shares: list[Parts] = [[] for _ in range(groups)]
    for segment, part in plan.split(keys):
        shares[segment % groups].append((segment, part))
    return [*shares, len(keys) - keys.null_count]


def build(plan: koel.FilterPlan, shares: list[Parts]) -> Parts:
    return plan.build(part for share in shares for part in share)


def build_filter(
    client: Client, plan: koel.FilterPlan, paths: list[str], column: str, target: str
) -> int:
    # A task for each file and group: four groups for each thread are enough to balance them.
    groups = min(plan.segments, 4 * sum(client.nthreads().values()))
    splits = [delayed(split, nout=groups + 1)(plan, groups, path, column) for path in paths]
    shares = [[of_file[group] for of_file in splits] for group in range(groups)]
    count = delayed(sum)([of_file[groups] for of_file in splits])
    *pieces, keys = client.compute([delayed(build)(plan, share) for share in shares] + [count])

    def arriving() -> Iterator[tuple[int, bytes]]:
        for future in as_completed(pieces):
            yield from future.result()
            future.release()

    return plan.save(arriving(), target, keys=keys.result())


@functools.cache
def opened(path: str) -> koel.CuckooFilter:
    """The filter, mapped once for each worker. All workers of a machine share its pages."""
    return koel.CuckooFilter.open(path, mmap=True)


def known(filter_path: str, path: str, column: str) -> int:
    keys = pq.read_table(path, columns=[column])[column]
    return pc.sum(opened(filter_path).contains_many(keys)).as_py() or 0


if __name__ == "__main__":
    capacity, column, target, *paths = sys.argv[1:]
    with Client() as client:
        client.upload_file(__file__)  # workers import it, so that `opened` keeps its filter
        import dask_build as job

        keys = job.build_filter(client, koel.FilterPlan(int(capacity)), paths, column, target)
        found = client.map(functools.partial(job.known, target, column=column), paths)
        print(f"{keys} keys went in, {sum(client.gather(found))} are known")
