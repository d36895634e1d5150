"""A filter whose entries expire answers as a dict of times, fixed or growing."""

import copy
import datetime
import pickle
from pathlib import Path
from typing import Any

import koel
import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

WINDOW = 24
# So small a rate that no test meets a false positive: the seeds are fixed.
RATE = 1e-7

keys = st.integers(0, 400).map(lambda number: number * 2**40 + number)
few = st.lists(keys, max_size=60)


class Window(RuleBasedStateMachine):
    """A fixed and a growing filter beside a dict from keys to the steps of their stamps."""

    drawn = Bundle("drawn")

    def __init__(self) -> None:
        super().__init__()
        self.filters = [
            koel.ExpiringFilter(2000, RATE, window=WINDOW, steps=12),
            koel.ExpiringFilter(20_000, RATE, window=WINDOW, steps=12, grow_from=1),
        ]
        self.step = 0
        self.stamps: dict[int, int] = {}

    def age(self, key: int) -> int | None:
        age = self.step - self.stamps[key] if key in self.stamps else 13
        return age if age <= 12 else None

    def stamp(self, key: int, refresh: bool) -> bool:
        is_new = self.age(key) is None
        if is_new or refresh:
            self.stamps[key] = self.step
        return is_new

    @rule(target=drawn, key=keys)
    def draw(self, key: int) -> int:
        return key

    @rule(key=drawn, refresh=st.booleans())
    def add(self, key: int, refresh: bool) -> None:
        is_new = self.stamp(key, refresh)
        assert [f.add(key, now=2 * self.step, refresh=refresh) for f in self.filters] == [is_new] * 2

    @rule(key=drawn, ttl=st.integers(0, WINDOW), refresh=st.booleans())
    def add_for_a_time(self, key: int, ttl: int, refresh: bool) -> None:
        age = self.age(key)
        now = 2 * self.step
        added = [f.add(key, now=now, ttl=ttl, refresh=refresh) for f in self.filters]
        assert added == [age is None] * 2
        start = 12 - -(-ttl // 2)
        if age is None or refresh and start < age:
            self.stamps[key] = self.step - start

    @rule(batch=few, ticks=st.integers(0, 9), refresh=st.booleans())
    def add_many(self, batch: list[int], ticks: int, refresh: bool) -> None:
        now = 2 * self.step + ticks
        self.step = now // 2
        expected = [self.stamp(key, refresh) for key in batch]
        fixed, growing = self.filters
        assert fixed.add_many(batch, now=now, refresh=refresh).tolist() == expected
        assert growing.update(batch, now=now + 0.5, refresh=refresh) == sum(expected)

    @rule(key=drawn)
    def discard(self, key: int) -> None:
        was_in = self.age(key) is not None
        assert [f.discard(key) for f in self.filters] == [was_in] * 2
        self.stamps.pop(key, None)

    @rule(batch=few)
    def remove_many(self, batch: list[int]) -> None:
        expected = []
        for key in batch:
            expected.append(self.age(key) is not None)
            self.stamps.pop(key, None)
        for f in self.filters:
            assert f.remove_many(batch).tolist() == expected

    @rule(ticks=st.integers(0, 70))
    def advance(self, ticks: int) -> None:
        live = len(self.filters[0])
        self.step = (2 * self.step + ticks) // 2
        for f in self.filters:
            assert f.advance(f.step_began + ticks) == live - len(f)

    @rule()
    def copy(self) -> None:
        first, second = self.filters
        copied = koel.ExpiringFilter.from_bytes(first.to_bytes())
        pickled = pickle.loads(pickle.dumps(second))
        assert copied == first and pickled == second == copy.deepcopy(second)
        self.filters = [copied, pickled]

    @rule()
    def shrink(self) -> None:
        for f in self.filters:
            f.shrink_to_fit()

    @invariant()
    def answers(self) -> None:
        ages = [self.age(key) for key in self.stamps]
        live = sum(age is not None for age in ages)
        for f in self.filters:
            assert f.step_began == 2 * self.step and len(f) == live and bool(f) == (live > 0)
            assert f.age_many(list(self.stamps)).tolist() == [-1 if a is None else a for a in ages]
            assert all((key in f) == (self.age(key) is not None) for key in self.stamps)


TestWindow = Window.TestCase
TestWindow.settings = settings(max_examples=25, stateful_step_count=30)


def test_files_are_opened_and_mapped(tmp_path: Path) -> None:
    path = tmp_path / "seen.koel"
    for grow_from in [None, 1]:
        seen = koel.ExpiringFilter(1000, window=60, grow_from=grow_from, when_full="evict")
        assert seen.update(range(900), now=600) > 890
        seen.save(path)
        assert koel.ExpiringFilter.open(path) == seen
        mapped = koel.ExpiringFilter.open(path, mmap=True)
        assert mapped.readonly and mapped.growable == (grow_from == 1)
        assert mapped.contains_many(np.arange(900)).all() and mapped.age(5) == 0
        assert mapped.contains_at(5, 650) and not mapped.contains_at(5, 670)
        with pytest.raises(ValueError, match="mmap"):
            mapped.add(5, now=700)


def test_a_full_filter_fails_evicts_or_grows() -> None:
    with pytest.raises(koel.Full, match="1000"):
        koel.ExpiringFilter(1000, window=60).update(range(5000), now=0)
    evicting = koel.ExpiringFilter(1000, window=60, when_full="evict")
    assert evicting.update(range(5000), now=0) > 4950 and evicting.evicted > 3000
    assert evicting.youngest_evicted == 0 and evicting.when_full == "evict"
    growing = koel.ExpiringFilter(10_000, window=60, grow=True)
    before = growing.nbytes
    assert growing.update(range(100_000), now=0) > 99_000 and growing.nbytes > 5 * before
    assert growing.contains_many(range(100_000)).all() and growing.evicted == 0
    growing.advance(1000)
    growing.shrink_to_fit()
    assert growing.nbytes == before


def test_a_jump_beyond_the_largest_one_changes_nothing() -> None:
    seen = koel.ExpiringFilter(1000, window=datetime.timedelta(minutes=10))
    began = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    assert seen.add("a", now=began)
    before = seen.to_bytes()
    limits: list[int | datetime.timedelta] = [0, 600, datetime.timedelta(days=1)]
    for most in limits:
        with pytest.raises(ValueError, match="ticks ahead, and at most"):
            seen.advance(began + datetime.timedelta(days=2), most=most)
        assert seen.to_bytes() == before
    assert seen.advance(began + datetime.timedelta(hours=1), most=datetime.timedelta(days=1)) == 1


def test_times_are_whole_numbers_or_floats() -> None:
    seen = koel.ExpiringFilter(1000, window=59.5, steps=6)
    assert (seen.window, seen.step) == (60, 10)
    assert seen.add("a", now=1019.9) and seen.step_began == 1010
    assert not seen.add("a", now=np.float64(1020)) and not seen.add("a", now=np.int64(3))
    assert seen.add("b", now=1020, ttl=10.5) and seen.age("b") == 4
    for wrong in [-1, -0.5, float("nan"), float("inf"), 2.0**63]:
        with pytest.raises(ValueError, match="from 0 to"):
            seen.advance(wrong)
    with pytest.raises(TypeError, match="int, a float, a datetime"):
        seen.advance("now")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="61"):
        seen.add("c", now=0, ttl=61)
    with pytest.raises(ValueError, match="'fail' or 'evict'"):
        koel.ExpiringFilter(1000, window=60, when_full="oldest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="window"):
        koel.ExpiringFilter(1000, window=0)
    with pytest.raises(TypeError, match="window"):
        koel.ExpiringFilter(1000)  # type: ignore[call-arg]


def test_a_key_without_a_time_is_refused_since_it_would_never_expire() -> None:
    seen = koel.ExpiringFilter(1000, window=60)
    untyped: Any = seen
    for add in (untyped.add, untyped.add_many, untyped.update):
        with pytest.raises(TypeError, match="now"):
            add(["key"])
        with pytest.raises(TypeError, match="(?s)a time is an int.*now"):
            add(["key"], now=None)
    assert len(seen) == 0 and seen.update(["a", "b"], ["c"], now=100) == 3
    assert seen.update(now=1000) == 0 and len(seen) == 0


def test_times_are_datetimes_in_seconds() -> None:
    start = datetime.datetime(2026, 11, 27, 12, tzinfo=datetime.timezone.utc)
    minute = datetime.timedelta(minutes=1)
    seen = koel.ExpiringFilter(1000, window=10 * minute)
    assert seen.window == 600 and seen.add("a", now=start) and not seen.add("a", now=start + minute)
    assert seen.step_began == start.timestamp() + 50 and seen.step == 25
    assert seen.contains_at("a", start + 9 * minute) and not seen.contains_at("a", start + 11 * minute)
    assert seen.add("b", now=start + minute, ttl=minute) and not seen.contains_at("b", start + 3 * minute)
    assert seen.add_many(["a"], now=pd.Timestamp(start) + pd.Timedelta(minutes=20)).all()
