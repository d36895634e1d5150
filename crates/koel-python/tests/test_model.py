"""Random operations: a filter answers as a multiset, but for false positives."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import koel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

# So small a rate that no test meets a false positive: the seeds are fixed.
RATE = 1e-7

# No two of them have the same bytes: only an int ends with a zero byte, only bytes begin with 0xff,
# and only a tuple has zeros inside.
keys = st.one_of(
    st.integers(0, 2**56 - 1),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.binary(max_size=20).map(lambda key: b"\xff" + key + b"\xff"),
    st.tuples(st.text("ab", max_size=5), st.integers(0, 9)),
)
few = st.lists(keys, max_size=30)


class Multiset(RuleBasedStateMachine):
    """A filter beside a `Counter`, with changes of each sort."""

    drawn = Bundle("drawn")

    def __init__(self) -> None:
        super().__init__()
        self.filter = koel.CuckooFilter(2000, RATE)
        self.counting = koel.CountingFilter(2000, RATE)
        self.model: Counter[koel.Key] = Counter()

    @rule(target=drawn, key=keys)
    def draw(self, key: koel.Key) -> koel.Key:
        return key

    @rule(key=drawn)
    def add(self, key: koel.Key) -> None:
        is_new = self.model[key] == 0
        assert self.filter.add(key) == is_new
        if is_new:
            self.model[key] = 1
            assert self.counting.add(key) == 1

    @rule(key=drawn, times=st.integers(1, 5))
    def add_copies(self, key: koel.Key, times: int) -> None:
        for _ in range(times):
            assert self.filter.add(key, multi=True)
        self.model[key] += times
        assert self.counting.add(key, times) == self.model[key]

    @rule(batch=few, multi=st.booleans())
    def update(self, batch: list[koel.Key], multi: bool) -> None:
        before = self.model.copy()
        for key in batch:
            self.model[key] += multi or self.model[key] == 0
        added = self.model.total() - before.total()
        assert self.filter.update(batch, multi=multi) == added
        self.counting.update((self.model - before).elements())

    @rule(batch=few)
    def add_many(self, batch: list[koel.Key]) -> None:
        expected = []
        for key in batch:
            expected.append(self.model[key] == 0)
            if expected[-1]:
                self.model[key] = 1
                self.counting.add(key)
        assert self.filter.add_many(batch).tolist() == expected

    @rule(key=drawn)
    def discard(self, key: koel.Key) -> None:
        was_in = self.model[key] > 0
        assert self.filter.discard(key) == self.counting.discard(key) == was_in
        self.model[key] -= was_in

    @rule(batch=st.lists(drawn, max_size=10))
    def remove_many(self, batch: list[koel.Key]) -> None:
        expected = []
        for key in batch:
            expected.append(self.model[key] > 0)
            self.model[key] -= expected[-1]
        assert self.filter.remove_many(batch).tolist() == expected
        assert self.counting.remove_many(batch).tolist() == expected

    @rule()
    def reopen(self) -> None:
        self.filter = koel.CuckooFilter.from_bytes(self.filter.to_bytes())
        self.counting = koel.CountingFilter.from_bytes(self.counting.to_bytes())

    @rule()
    def clear(self) -> None:
        self.filter.clear()
        self.counting.clear()
        self.model.clear()

    @invariant()
    def answers_as_the_model(self) -> None:
        known = list(self.model)
        counts = [self.model[key] for key in known]
        for face in (self.filter, self.counting):
            assert len(face) == self.model.total() and bool(face) == (len(face) > 0)
            assert face.count_many(known).tolist() == counts
            assert [face.count(key) for key in known] == counts
            assert face.contains_many(known).tolist() == [count > 0 for count in counts]
            assert [key in face for key in known] == [count > 0 for count in counts]


TestMultiset = Multiset.TestCase
TestMultiset.settings = settings(max_examples=60, stateful_step_count=30)


Face = TypeVar("Face", koel.CuckooFilter, koel.CountingFilter)


def filter_of(batch: list[koel.Key]) -> koel.CuckooFilter:
    f = koel.CuckooFilter(1000, RATE)
    f.update(batch, multi=True)
    return f


def counting_of(batch: list[koel.Key]) -> koel.CountingFilter:
    c = koel.CountingFilter(1000, RATE)
    c.update(batch)
    return c


@settings(max_examples=60)
@given(first=few, second=few)
def test_a_merge_combines_counts(first: list[koel.Key], second: list[koel.Key]) -> None:
    assert_merges(filter_of, first, second)
    assert_merges(counting_of, first, second)


def assert_merges(
    make: Callable[[list[koel.Key]], Face], first: list[koel.Key], second: list[koel.Key]
) -> None:
    a, b = make(first), make(second)
    total = a.copy()
    total.merge(b, counts="sum")
    both = a | b
    a |= b
    assert a == both
    for face, counts in (
        (both, Counter(first) | Counter(second)),
        (total, Counter(first) + Counter(second)),
    ):
        assert face.count_many(list(counts)).tolist() == list(counts.values())
        assert len(face) == counts.total()


@settings(max_examples=60)
@given(pairs=st.lists(st.tuples(keys, st.integers(0, 2**40 - 1)), max_size=40, unique=True))
def test_a_maplet_returns_every_value(pairs: list[tuple[koel.Key, int]]) -> None:
    model: dict[koel.Key, list[int]] = {}
    for key, value in pairs:
        if len(model.setdefault(key, [])) < 4:
            model[key].append(value)
    pairs = [(key, value) for key, values in model.items() for value in values]
    m = koel.Maplet(1000, 1e-6, value_bits=40)
    m.update(pairs)
    assert len(m) == len(pairs)
    offsets, values = m.get_many(list(model))
    for i, (key, expected) in enumerate(model.items()):
        assert sorted(m[key]) == sorted(expected)
        assert sorted(values[offsets[i] : offsets[i + 1]].tolist()) == sorted(expected)
    halves = pairs[::2]
    removed = m.remove_many([key for key, _ in halves], [value for _, value in halves])
    assert removed.all() and len(m) == len(pairs) - len(halves)
    for key, value in pairs[1::2]:
        assert m.replace(key, value, value ^ 1) and value ^ 1 in m.get(key)
        m.remove(key, value ^ 1)
    assert len(m) == 0 and not np.any(m.contains_many(list(model)))


@pytest.mark.parametrize("face", [koel.CuckooFilter, koel.CountingFilter])
def test_equal_filters_hold_the_same_in_whatever_order_it_came(
    face: type[koel.CuckooFilter] | type[koel.CountingFilter], tmp_path: Path
) -> None:
    a, b = face(1000), face(1000)
    a.update(range(900))
    b.update(reversed(range(900)))
    assert a == b and not a != b and a.to_bytes() != b.to_bytes()
    b.save(tmp_path / "b.koel")
    mapped = face.open(tmp_path / "b.koel")
    assert a == mapped and mapped == a and mapped == mapped
    b.discard(5)
    assert a != b and mapped != b
    b.add(1_000_000)
    assert a != b and len(a) == len(b)
    assert a != face(2000) and face(1000) == face(1000) and a != "a"
