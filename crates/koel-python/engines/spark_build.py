"""python spark_build.py CAPACITY COLUMN FILTER PARQUET: builds a filter, and asks it."""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import koel
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

Batches = Iterable[pa.RecordBatch]


def build_filter(plan: Any, keys: DataFrame, target: str) -> int:
    def split(batches: Batches) -> Iterator[pa.RecordBatch]:
        columns = [batch.column(0) for batch in batches]
        for segment, part in plan.split(pa.chunked_array(columns)) if columns else []:
            yield pa.record_batch({"segment": [segment], "bytes": [part]})

    def build(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for segment, piece in plan.build((row["segment"], row["bytes"]) for row in rows):
            yield pa.record_batch({"segment": [segment], "bytes": [piece]})

    # Spark writes pieces where the driver can read them, each once, whatever tasks fail.
    schema = "segment long, bytes binary"
    parts = keys.mapInArrow(split, schema).repartition("segment")
    parts.mapInArrow(build, schema).write.mode("overwrite").parquet(f"{target}.pieces")
    pieces = ds.dataset(f"{target}.pieces").to_batches(columns=["bytes"], batch_size=8)
    each = (piece.as_buffer() for batch in pieces for piece in batch.column(0))
    return plan.save(each, target, keys=keys.dropna().count())


@cache
def opened(path: str) -> koel.CuckooFilter:
    # Mapped once for each worker. All workers of a machine share its pages.
    return koel.CuckooFilter.open(path, mmap=True)


def known(keys: DataFrame, target: str) -> DataFrame:
    keys.sparkSession.sparkContext.addFile(target)  # a copy for each machine
    keys.sparkSession.sparkContext.addPyFile(__file__)  # so that `opened` keeps its filter

    def ask(batches: Batches) -> Iterator[pa.RecordBatch]:
        import spark_build

        seen = spark_build.opened(SparkFiles.get(target.split("/")[-1]))
        yield from (batch.filter(seen.contains_many(batch.column(0))) for batch in batches)

    return keys.mapInArrow(ask, keys.schema)


if __name__ == "__main__":
    capacity, column, target, source = sys.argv[1:]
    keys = SparkSession.builder.getOrCreate().read.parquet(source).select(column)
    count = build_filter(koel.FilterPlan(int(capacity)), keys, target)
    print(f"{count} keys went in, {known(keys, target).count()} are known")
