"""dask_build.py in a cluster of processes: the file is that of a local build, task killed or not."""

from collections.abc import Iterator
from pathlib import Path

import dask_build
import koel
import pytest
from conftest import CAPACITY, Fragile, Job
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client


@pytest.mark.parametrize("multi", [False, True])
def test_the_file_is_that_of_a_local_build(client: Client, job: Job, multi: bool) -> None:
    plan = koel.FilterPlan(CAPACITY, multi=multi, seed=9)
    target = job.folder / "seen.koel"
    count = dask_build.build_filter(client, plan, job.paths, "key", str(target))
    assert count == len(job.values)
    assert target.read_bytes() == job.expected(plan)
    found = client.map(dask_build.known, [str(target)] * len(job.paths), job.paths, ["key"] * 6)
    assert sum(client.gather(found)) == len(job.values)


@pytest.mark.parametrize("job", ["string"], indirect=True)
def test_killed_tasks_run_again(client: Client, job: Job) -> None:
    plan = koel.FilterPlan(CAPACITY)
    fragile = Fragile(plan, job.folder)
    target = job.folder / "seen.koel"
    dask_build.build_filter(client, fragile, job.paths, "key", str(target))
    assert target.read_bytes() == job.expected(plan)


def test_the_filter_is_mapped_once_in_each_worker(client: Client, tmp_path: Path) -> None:
    path = str(tmp_path / "seen.koel")
    koel.CuckooFilter(1000).save(path)
    for worker in client.nthreads():
        opened = [
            client.submit(lambda n: id(dask_build.opened(path)), n, workers=[worker], pure=False)
            for n in range(5)
        ]
        assert len(set(client.gather(opened))) == 1
