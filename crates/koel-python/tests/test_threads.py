"""Threads that share a filter: every change counts, and nobody waits for ever."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import koel
import numpy as np
import pytest

THREADS = 4


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


def together(*jobs: Callable[[], Any]) -> None:
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> None:
        start.wait()
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(run, job) for job in jobs]:
            done.result(timeout=120)


def test_changes_of_all_threads_count() -> None:
    n = 20_000
    f, c = koel.CuckooFilter(THREADS * n, 1e-6), koel.CountingFilter(2000)

    def work(number: int) -> None:
        keys = np.arange(number * n, (number + 1) * n, dtype=np.uint64)
        for part in np.split(keys, 10):
            f.update(part, multi=True)
            for key in part[:50].tolist():
                f.add(key, multi=True)
                c.add(key % 1000)
            c.update(part % np.uint64(1000))

    together(*[lambda number=i: work(number) for i in range(THREADS)])
    assert len(f) == THREADS * (n + 500) and len(c) == THREADS * (n + 500)
    assert f.contains_many(np.arange(THREADS * n)).all()


def test_lookups_beside_changes_miss_no_key() -> None:
    n = 30_000
    kept, moving = np.arange(n), np.arange(n, 2 * n)
    f = koel.CuckooFilter(2 * n)
    f.update(kept, multi=True)
    done = threading.Event()

    def change() -> None:
        for _ in range(10):
            f.update(moving, multi=True)
            f.remove_many(moving)
            f.add("x", multi=True)
        done.set()

    def look() -> None:
        while not done.is_set():
            assert f.contains_many(kept).all()
            assert all(key in f for key in range(0, n, 1009))
            assert len(f.copy()) >= n

    together(change, look, look)
    assert len(f) == n + 10


def test_filters_that_use_each_other_do_not_wait_for_ever() -> None:
    a, b = koel.CuckooFilter(5000), koel.CuckooFilter(5000)
    a.update(range(2000))
    b.update(range(1000, 3000))

    def work(ours: koel.CuckooFilter, theirs: koel.CuckooFilter) -> None:
        for _ in range(100):
            ours.merge(theirs)
            assert ours.similarity(theirs).value > 0
            assert (ours | theirs).contains_many(range(3000)).all()
            assert ours == ours

    together(*[lambda: work(a, b), lambda: work(b, a)] * 2)
    assert a.diff(b).common.value > 2900


def test_a_batch_lets_other_threads_run() -> None:
    """A thread that holds the GIL for a whole batch would let no other thread count meanwhile."""
    # Nobody has to give up the GIL: the counter does so after each turn, and the batch while it runs.
    sys.setswitchinterval(1000)
    f = koel.CuckooFilter(100, 0.01)
    keys = np.arange(8_000_000, dtype=np.uint64)
    turns, done = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)

    def has_let_others_run() -> bool:
        before = turns
        f.contains_many(keys)
        return turns > before

    def look() -> None:
        try:
            # Several, because a busy machine may not start the other thread during one batch.
            assert any(has_let_others_run() for _ in range(100))
        finally:
            done.set()

    together(count, look)
