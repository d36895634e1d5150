"""Measures koel beside other packages for Python: `python -m koel.bench`. Prints Markdown tables.

Each figure is the median of several runs, in nanoseconds of CPU time for one key. Loops are
compared with loops, and batches with batches. Packages that are not installed are left out.

    pip install rbloom fastbloom-rs pyprobables cuckoopy
"""

import argparse
import gc
import importlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import koel

RATE = 0.001


def measure(work: Callable[[], object], keys: int, runs: int) -> float:
    """The median CPU time of `work` for one key, in nanoseconds."""
    times = []
    for _ in range(runs):
        gc.collect()
        gc.disable()
        start = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - start) / keys)
        gc.enable()
    return statistics.median(times)


def each(function: Callable[[Any], object], keys: Iterable[object]) -> None:
    for key in keys:
        function(key)


def contains_each(container: Any, keys: Iterable[object]) -> None:
    for key in keys:
        key in container  # noqa: B015  # pyright: ignore[reportUnusedExpression]


class Subject:
    """A package: how it makes a filter, and what of a filter's methods it has."""

    def __init__(
        self,
        name: str,
        make: Callable[[int], Any],
        add: str = "add",
        update: str | None = None,
        contains: str | None = None,
    ) -> None:
        self.name, self.make, self.add, self.update, self.contains = (
            name, make, add, update, contains,
        )  # fmt: skip

    def look(self, filter: Any, keys: Iterable[object]) -> None:
        if self.contains is None:
            contains_each(filter, keys)
        else:
            each(getattr(filter, self.contains), keys)


def subjects() -> Iterator[Subject]:
    yield Subject("koel", lambda n: koel.CuckooFilter(n, RATE), update="update")
    yield Subject("set", lambda n: set(), update="update")
    if rbloom := installed("rbloom"):
        yield Subject("rbloom", lambda n: rbloom.Bloom(n, RATE), update="update")
    if fastbloom := installed("fastbloom_rs"):
        yield Subject(
            "fastbloom-rs",
            lambda n: fastbloom.BloomFilter(n, RATE),
            contains="contains",
        )
    if probables := installed("probables"):
        yield Subject(
            "pyprobables",
            lambda n: probables.CuckooFilter(capacity=n // 3, finger_size=2),
        )
    if cuckoopy := installed("cuckoopy"):
        yield Subject(
            "cuckoopy",
            lambda n: cuckoopy.CuckooFilter(n // 3, 4, 12),
            add="insert",
            contains="contains",
        )


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# So slow that they get fewer keys; as keys they take only str.
SLOW = {"pyprobables", "cuckoopy"}


def heading(*cells: str) -> None:
    """The heading of a table, and its rule."""
    print(f"\n| {' | '.join(cells)} |\n|---|{'--:|' * (len(cells) - 1)}")


def row(name: str, *figures: float) -> None:
    """A row of a table: three significant digits from 1 on."""
    texts = [f"{figure:.1f}" if figure < 100 else f"{figure:.0f}" for figure in figures]
    print(f"| {name} | {' | '.join(texts)} |", flush=True)


def loops(n: int, runs: int) -> None:
    """One key a call."""
    heading(f"one key a call, {n:,} keys, ns", "add str", "`in` str", "add int", "`in` int")
    texts: list[object] = [f"https://example.org/{i}" for i in range(n)]
    ints: list[object] = list(range(n))
    for subject in subjects():
        figures: list[float] = []
        for keys in (texts, ints):
            if subject.name in SLOW:
                keys = list[object](map(str, keys[: n // 50]))
            figures += loop(subject, keys, runs)
        row(subject.name, *figures)


def loop(subject: Subject, keys: list[object], runs: int) -> list[float]:
    """The times to add and to look up a key."""

    def fill() -> Any:
        filter = subject.make(len(keys))
        each(getattr(filter, subject.add), keys)
        return filter

    filter = fill()
    add = measure(fill, len(keys), runs)
    return [add, measure(lambda: subject.look(filter, keys), len(keys), runs)]


def batches(n: int, runs: int) -> None:
    """Many keys a call."""
    heading(f"`update` of {n:,} uint64 in one call", "ns a key")
    words = np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64)
    for subject in subjects():
        if subject.update is None:
            continue
        keys = words if subject.name == "koel" else words.tolist()

        def update(subject: Subject = subject, keys: Any = keys) -> None:
            getattr(subject.make(n), str(subject.update))(keys)

        row(subject.name, measure(update, n, runs))
    filter = koel.CuckooFilter(n, RATE)
    empty = measure(lambda: koel.CuckooFilter(n, RATE), n, runs)
    many = measure(lambda: koel.CuckooFilter(n, RATE).update(words, multi=True), n, runs)
    filter.update(words, multi=True)
    row("koel, `multi=True`", many)
    row("koel, an empty filter", empty)
    heading(f"`contains_many`; the filter of {n:,} takes {filter.nbytes:,} bytes", "ns a key")
    row(f"numpy uint64, {n:,}", measure(lambda: filter.contains_many(words), n, runs))
    texts = [f"https://example.org/{i}" for i in range(n // 10)]
    small = koel.CuckooFilter(len(texts), RATE)
    small.update(texts)
    kinds: dict[str, Any] = {"list of str": texts, "list of int": list(range(n // 10))}
    if pyarrow := installed("pyarrow"):
        kinds["pyarrow string"] = pyarrow.array(texts)
    if polars := installed("polars"):
        kinds["polars String"] = polars.Series(texts)
    if pandas := installed("pandas"):
        kinds["pandas str"] = pandas.Series(texts)
    for name, keys in kinds.items():

        def look(keys: Any = keys) -> None:
            small.contains_many(keys)

        row(f"{name}, {n // 10:,}", measure(look, n // 10, runs))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m koel.bench", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="keys of a batch")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts")
    options = parser.parse_args()
    batches(options.keys, options.runs)
    loops(max(options.keys // 10, 1), options.runs)


if __name__ == "__main__":
    main()
