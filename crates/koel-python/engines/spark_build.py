"""Builds one filter from Parquet files with Spark, and asks it from the tasks of a job.

python spark_build.py CAPACITY COLUMN FILTER PARQUET
"""

import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import koel
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

SCHEMA = "segment long, bytes binary"


def batch(rows: list[tuple[int, bytes]]) -> pa.RecordBatch:
    segments, messages = zip(*rows)
    return pa.record_batch({"segment": segments, "bytes": pa.array(messages, pa.binary())})


def build_filter(plan: koel.FilterPlan, keys: DataFrame, target: str) -> int:
    """Builds the filter of a frame with one column. Returns how many keys it has."""

    def split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = [batch.column(0) for batch in batches]
        if columns and (parts := plan.split(pa.chunked_array(columns))):
            yield batch(parts)

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for piece in plan.build((row["segment"], row["bytes"]) for row in rows):
            yield batch([piece])

    # Spark writes pieces where the driver can read them, each once, whatever tasks fail.
    tasks = min(plan.segments, 4 * keys.sparkSession.sparkContext.defaultParallelism)
    parts = keys.mapInArrow(split, SCHEMA).repartition(tasks, "segment")
    parts.mapInArrow(build, SCHEMA).write.mode("overwrite").parquet(f"{target}.pieces")
    pieces = ds.dataset(f"{target}.pieces", pa.schema({"bytes": pa.binary()}), format="parquet")
    each = (piece.as_buffer() for batch in pieces.to_batches(batch_size=8) for piece in batch[0])
    return plan.save(each, target, keys=keys.dropna().count())


@functools.cache
def opened(path: str) -> koel.CuckooFilter:
    """The filter, mapped once for each worker. All workers of a machine share its pages."""
    return koel.CuckooFilter.open(path, mmap=True)


def known(keys: DataFrame, target: str) -> DataFrame:
    keys.sparkSession.sparkContext.addFile(target)  # a copy for each machine
    keys.sparkSession.sparkContext.addPyFile(__file__)  # so that `opened` keeps its filter

    def ask(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import spark_build

        seen = spark_build.opened(SparkFiles.get(Path(target).name))
        yield from (batch.filter(seen.contains_many(batch.column(0))) for batch in batches)

    return keys.mapInArrow(ask, keys.schema)


if __name__ == "__main__":
    capacity, column, target, source = sys.argv[1:]
    keys = SparkSession.builder.getOrCreate().read.parquet(source).select(column)
    count = build_filter(koel.FilterPlan(int(capacity)), keys, target)
    print(f"{count} keys went in, {known(keys, target).count()} are known")
