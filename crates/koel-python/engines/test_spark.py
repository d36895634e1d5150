"""spark_build.py on two local workers: the file is that of a local build, task killed or not."""

from collections.abc import Iterator

import koel
import pytest
import spark_build
from conftest import CAPACITY, Fragile, Job
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # Two workers. A task may fail twice, which the default for a local master forbids.
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield spark
    spark.stop()


def test_the_file_is_that_of_a_local_build(spark: SparkSession, job: Job) -> None:
    plan = koel.FilterPlan(CAPACITY, seed=9)
    target = job.folder / f"{job.folder.name}.koel"  # Spark wants another name for each file
    keys = spark.read.parquet(*job.paths)
    assert spark_build.build_filter(plan, keys, str(target)) == len(job.values)
    assert target.read_bytes() == job.expected(plan)
    assert spark_build.known(keys, str(target)).count() == len(job.values)


@pytest.mark.parametrize("job", ["string"], indirect=True)
def test_killed_tasks_run_again(spark: SparkSession, job: Job) -> None:
    plan = koel.FilterPlan(CAPACITY, multi=True)
    target = job.folder / "seen.koel"
    spark_build.build_filter(Fragile(plan, job.folder), spark.read.parquet(*job.paths), str(target))
    assert target.read_bytes() == job.expected(plan)
