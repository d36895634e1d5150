"""Measures dask_build.py or spark_build.py: CPU time in workers and engine, memory of the driver.

`python measure.py dask|spark KEYS` prints a row of the table of `scripts/engines figures`.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import koel
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq


def cpu() -> dict[str, float]:
    """Seconds of CPU so far, of this process and, by program, of those that it started."""
    spent = {"driver": time.process_time()}
    for child in psutil.Process().children(recursive=True):
        name = "jvm" if "java" in child.name() else "workers"
        times = child.cpu_times()
        used = times.user + times.system + times.children_user + times.children_system
        spent[name] = spent.get(name, 0.0) + used
    return spent


def main(engine: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, plan = Path(name), koel.FilterPlan(count)
        paths = [str(folder / f"keys-{number}.parquet") for number in range(8)]
        for path, keys in zip(paths, np.array_split(np.arange(count), len(paths))):
            pq.write_table(pa.table({"key": keys}), path)
        target = str(folder / "seen.koel")
        if engine == "dask":
            import dask_build
            from distributed import Client, LocalCluster

            with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
                dask_build.build_filter(client, plan, paths, "key", target)
                spent = cpu()
        else:
            import spark_build
            from pyspark.sql import SparkSession

            spark = SparkSession.builder.master("local[2]").getOrCreate()
            spark_build.build_filter(plan, spark.read.parquet(*paths), target)
            spent = cpu()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        local = plan.join(plan.build(plan.split(np.arange(count))), keys=count).to_bytes()
        equal = "yes" if Path(target).read_bytes() == local else "NO"
        names = ["workers", "jvm", "driver"]
        each = [f"{1e9 * spent[name] / count:.0f}" if name in spent else "" for name in names]
        print(f"| {engine} | {count:,} | {' | '.join(each)} | {peak} MB | {equal} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
