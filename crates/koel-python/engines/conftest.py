"""Keys of several types in Parquet files: some come twice, and one file is empty."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import koel
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FILES = 6
CAPACITY = 3_000_000  # several segments


class Job(NamedTuple):
    folder: Path
    paths: list[str]
    values: pa.Array

    def expected(self, plan: koel.FilterPlan) -> bytes:
        """The bytes of the filter that this process builds of all keys."""
        return plan.join(plan.build(plan.split(self.values)), keys=len(self.values)).to_bytes()


class Fragile:
    """A plan whose first task of each kind is killed, with its process."""

    def __init__(self, plan: koel.FilterPlan, folder: Path) -> None:
        self.plan, self.folder, self.segments = plan, folder, plan.segments

    def die_once(self, task: str) -> None:
        try:
            (self.folder / f"killed {task}").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def split(self, keys: Any) -> list[tuple[int, bytes]]:
        self.die_once("split")
        return self.plan.split(keys)

    def build(self, parts: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        self.die_once("build")
        return self.plan.build(parts)

    def save(self, pieces: Any, path: str, *, keys: int) -> int:
        saved = self.plan.save(pieces, path, keys=keys)
        # Only now: the pieces are made while `save` takes them.
        assert {"killed split", "killed build"} <= set(os.listdir(self.folder))
        return saved


@pytest.fixture(params=["int64", "string", "binary"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    numbers = list(range(30_000)) + list(range(500))
    values = pa.array([f"key {n}" for n in numbers] if request.param != "int64" else numbers)
    values = values.cast(getattr(pa, request.param)())
    paths, share = [], len(values) // (FILES - 1)
    for number in range(FILES):
        part = values.slice(number * share, share if number < FILES - 1 else 0)
        paths.append(str(tmp_path / f"keys-{number}.parquet"))
        pq.write_table(pa.table({"key": part}), paths[-1])
    return Job(tmp_path, paths, values)
