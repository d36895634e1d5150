"""What a batch that failed has done: the keys before the one that failed, and the exception says so.

`done` is their number, missing ones included, and `answers` what the call would have returned.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import koel
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

CHUNK = 1 << 18


def words_with(bad: object, at: int, total: int) -> list[Any]:
    keys: list[Any] = list(range(total))
    keys[at] = bad
    return keys


def failed(call: Callable[[], object], error: type[BaseException]) -> Any:
    with pytest.raises(error) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "collection",
    [
        lambda keys: keys,
        tuple,
        lambda keys: np.array(keys, dtype=object),
        lambda keys: pd.Series(keys, dtype=object),
        lambda keys: dict.fromkeys(keys).keys(),
    ],
    ids=["list", "tuple", "numpy", "pandas", "dict"],
)
def test_keys_of_a_collection_are_checked_before_the_first_change(
    collection: Callable[[list[Any]], Any],
) -> None:
    keys = collection(words_with(1.5, CHUNK + 100, CHUNK + 200))
    plain, expiring = koel.CuckooFilter(400_000), koel.ExpiringFilter(400_000, window=60)
    cases: list[tuple[Any, dict[str, int]]] = [(plain, {}), (expiring, {"now": 0})]
    for f, now in cases:
        methods: list[tuple[Any, dict[str, int]]] = [
            (f.add_many, now), (f.update, now), (f.remove_many, {}),
        ]
        for method, options in methods:
            f.add(0, **now)
            error = failed(lambda: method(keys, **options), TypeError)
            assert error.done == 0 and len(f) == 1
            assert np.array_equal(error.answers, [] if method != f.update else 0)
    counting = koel.CountingFilter(400_000)
    assert failed(lambda: counting.update(keys), TypeError).done == 0 == len(counting)


@pytest.mark.parametrize("at", [0, 10, CHUNK, CHUNK + 37_000])
def test_keys_of_an_iterator_before_the_one_that_fails_are_done(at: int) -> None:
    def stream() -> Iterator[int]:
        yield from range(at)
        raise RuntimeError("the connection is gone")

    f, again = koel.CuckooFilter(400_000), koel.CuckooFilter(400_000)
    error = failed(lambda: f.add_many(stream()), RuntimeError)
    assert error.done == at == len(error.answers)
    assert np.array_equal(error.answers, again.add_many(range(at))) and f == again
    counted = failed(lambda: f.update(stream()), RuntimeError)
    assert (counted.done, counted.answers) == (at, 0)
    removed = failed(lambda: f.remove_many(stream()), RuntimeError)
    assert removed.done == at and len(f) == len(again) - removed.answers.sum()
    bad = failed(lambda: f.add_many(iter(words_with(None, at, at + 5))), TypeError)
    assert bad.done == at


def makers() -> dict[str, Callable[[], Any]]:
    return {
        "filter": lambda: koel.CuckooFilter(1000),
        "expiring": lambda: koel.ExpiringFilter(1000, window=60),
    }


@pytest.mark.parametrize("name", makers())
@pytest.mark.parametrize("kind", [np.array, list, pa.array, lambda keys: iter(keys.tolist())])
def test_a_full_filter_says_which_keys_are_in(name: str, kind: Callable[[Any], Any]) -> None:
    f, single = makers()[name](), makers()[name]()
    now = {"now": 0} if name == "expiring" else {}
    # Every third key comes twice, so some answers are False.
    keys = np.array([key - (key % 3 == 1) for key in range(5000)])
    error = failed(lambda: f.add_many(kind(keys), **now), koel.Full)
    answers = [single.add(int(key), **now) for key in keys[: error.done]]
    assert error.answers.tolist() == answers and f == single
    with pytest.raises(koel.Full):
        single.add(int(keys[error.done]), **now)
    # A retry with what is left does not report a key as seen that was not answered.
    again = failed(lambda: f.add_many(kind(keys[error.done :]), **now), koel.Full)
    assert again.done == 0 == len(again.answers)


def test_several_iterables_are_one_batch() -> None:
    f = koel.CuckooFilter(1000)
    assert f.update(range(100), ["a", "b"], np.arange(50, 150)) == len(f) == 152
    assert f.update() == 0
    last: Any = iter([1, "c", 1.5, "d"])
    error = failed(lambda: f.update(range(150, 160), last), TypeError)
    assert (error.done, error.answers, len(f), "c" in f) == (12, 11, 163, True)
    c = koel.CountingFilter(1000)
    assert c.update(["a", "b"], ["a"]) == 3
    assert c.count("a") == 2
    with pytest.raises(TypeError, match="would not be counted"):
        c.update(["a"], {"a": 5})  # the mapping is refused before anything is counted
    assert c.count("a") == 2


def test_missing_keys_count_as_done() -> None:
    keys = pa.array([None, *range(5000)], pa.int64())
    f = koel.CuckooFilter(100)
    error = failed(lambda: f.add_many(keys), koel.Full)
    assert len(error.answers) == error.done and error.answers.sum() == len(f)
    assert not error.answers[0]
    assert f.contains_many(keys[: error.done]).to_pylist()[1:] == [True] * (error.done - 1)


def test_multiset_counts_and_pairs_say_how_many_are_in() -> None:
    f = koel.CuckooFilter(100)
    error = failed(lambda: f.update(range(5000), multi=True), koel.Full)
    assert error.done == error.answers == len(f)
    c = koel.CountingFilter(100)
    error = failed(lambda: c.update(range(5000)), koel.Full)
    assert error.done == error.answers == len(c) and c.contains_many(range(error.done)).all()
    m = koel.Maplet(100, value_bits=8)
    error = failed(lambda: m.update(range(5000), [1] * 5000), koel.Full)
    assert error.done == len(m) and error.answers is None
    assert m.contains_many(range(error.done)).all()
    wrong = failed(lambda: m.update([1, 2], [1, 256]), ValueError)
    assert wrong.done == 0


def test_what_looks_like_keys_and_is_not() -> None:
    f = koel.CuckooFilter(100)
    periods = pd.Series(pd.period_range("2026-01", periods=3, freq="M"))
    wrong: list[tuple[Any, str]] = [
        (pl.Series([object(), object()], dtype=pl.Object), "Object"),
        (periods, "period|Period"),
        (pd.Index(periods), "period|Period"),
        (pd.Series(pd.interval_range(0, 3)), "not"),
        (pd.Series(pd.to_datetime(["2026-01-01"], utc=True)), "not"),
    ]
    for keys, words in wrong:
        error = failed(lambda: f.update(keys), TypeError)
        assert words.split("|")[0] in str(error) or words.split("|")[-1] in str(error)
    assert len(f) == 0


def test_masked_values_are_missing_keys() -> None:
    keys: Any = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    f = koel.CuckooFilter(100, 1e-9)
    added: Any = f.add_many(keys)
    assert isinstance(added, np.ma.MaskedArray) and added.tolist() == [[True, None], [True, True]]
    assert f.contains_many([1, 2, 3, 4]).tolist() == [True, False, True, True]
    counts: Any = f.count_many(keys[0])
    assert counts.tolist() == [1, None]
    assert f.contains_many(np.ma.masked_array([1, 2])).tolist() == [True, False]
    texts: Any = np.ma.masked_array(["a", "b"], mask=[True, False])
    assert f.update(texts) == 1 and "a" not in f and "b" in f
    with pytest.raises(ValueError, match="missing"):
        koel.Maplet(10, value_bits=2).update(keys[0], [1, 2])


def test_an_array_that_another_thread_writes_to_is_copied_first() -> None:
    """The filter hashes a copy: answers and table agree whatever is written meanwhile."""
    keys = np.zeros(200_000, dtype=np.uint64)
    done = threading.Event()

    def scribble() -> None:
        number = 0
        while not done.is_set():
            number += 1
            keys[:] = number

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(20):
            f = koel.CuckooFilter(200_000, 1e-9)
            added = f.add_many(keys)
            assert added.sum() == len(f)
    finally:
        done.set()
        writer.join()


def run_script(script: str) -> str:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork_can_use_a_filter_that_was_in_a_batch() -> None:
    script = """
import os, threading, time
import numpy as np, koel
f = koel.CuckooFilter(2_000_000)
keys = np.arange(1_000_000)
stop = False
def work():
    while not stop:
        f.add_many(keys)
        f.remove_many(keys)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for turn in range(20):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        f.add("child")
        os._exit(0 if "child" in f else 1)
    assert os.waitpid(child, 0)[1] == 0
    f.add("parent")
stop = True
for thread in threads: thread.join()
print("done")
"""
    assert run_script(script) == "done\n"


CTRL_C = """
import os, signal, threading, time
import numpy as np, koel
n = 3_000_000
a, b = koel.CuckooFilter(2 * n), koel.CuckooFilter(2 * n)
a.update(np.arange(n), multi=True)
b.update(np.arange(n // 2, n + n // 2), multi=True)
g = koel.CuckooFilter(1000, grow=True)
work = {
    "merge": lambda: a.merge(b),
    "similarity": lambda: a.similarity(b),
    "reserve": lambda: g.reserve(400_000_000),
}[WHAT]
before = a.to_bytes()
def interrupt():
    time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threads = lambda: len(os.listdir("/proc/self/task"))
quiet = threads()
thread = threading.Thread(target=interrupt)
try:
    thread.start()
    work()
except KeyboardInterrupt:
    pass
thread.join()
# The call returned while its work went on, or had made a part of the room.
gave_up = g.nbytes < 400_000_000 if WHAT == "reserve" else threads() > quiet
print(gave_up, a.to_bytes() == before and g.add("x"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads")
@pytest.mark.parametrize("what", ["merge", "similarity", "reserve"])
def test_ctrl_c_gives_up_what_takes_long(what: str) -> None:
    assert run_script(f"WHAT = {what!r}\n{CTRL_C}") == "True True\n"


def test_workers_of_a_pool_fork_beside_batches() -> None:
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    f = koel.CuckooFilter(100_000)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            f.update(np.arange(50_000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with context.Pool(2) as pool:
            assert pool.map(f.__contains__, [1, 2, 3]) is not None
    finally:
        stop.set()
        thread.join()
