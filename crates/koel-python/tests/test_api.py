"""What users see of each class: answers, errors, and what is printed."""

import copy
import gc
import os
import pickle
import struct
import sys
import weakref
from typing import Any

import koel
import numpy as np
import pyarrow as pa
import pytest


def test_what_is_full_raises_and_keeps_what_it_has() -> None:
    f = koel.CuckooFilter(10)
    with pytest.raises(koel.Full, match="built for 10 keys; build a larger one"):
        f.update(range(1000))
    c = koel.CountingFilter(10)
    with pytest.raises(koel.Full):
        c.update(range(1000))
    m = koel.Maplet(10, value_bits=3)
    with pytest.raises(koel.Full, match="built for 10 keys"):
        for value in range(20):
            m.add("key", value % 8)
    assert len(m) == 10 and set(m["key"]) == set(range(8))


def test_what_grows_takes_any_number_of_keys() -> None:
    f = koel.CuckooFilter(10**6, grow_from=1000)
    before = f.nbytes
    f.update(range(20_000))
    assert f.nbytes > 5 * before and f.false_positive_rate < 0.00135
    for c in (koel.CountingFilter(1000, grow=True), koel.CountingFilter(10**6, grow_from=1000)):
        c.update(range(20_000))
        assert c.growable and len(c) == 20_000
    m = koel.Maplet(1000, value_bits=20, grow=True)
    m.update(range(20_000), np.arange(20_000))
    assert all(key in m[key] for key in range(0, 20_000, 97))


def test_settings_that_cannot_be_built() -> None:
    wrong: list[tuple[type[BaseException], str, dict[str, Any]]] = [
        (ValueError, "above 0 and below 1", {"error_rate": 2.0}),
        (ValueError, "above 0 and below 1", {"error_rate": float("nan")}),
        (ValueError, "ask for", {"error_rate": 1e-30}),
        (ValueError, "too many", {"capacity": 2**62}),
        (ValueError, "not -1", {"capacity": -1}),
        (ValueError, "not -1", {"seed": -1}),
        (ValueError, "not 18446744073709551616", {"capacity": 2**64}),
        (ValueError, "more than the capacity, 1000", {"grow_from": 1001}),
        (ValueError, "more than the capacity, 1000", {"grow_from": 10**9}),
        (TypeError, "capacity", {"capacity": "many"}),
        (ValueError, "'small' or 'fast'", {"prefer": "large"}),
        (ValueError, "16 bytes, not 3", {"secret": b"abc"}),
        (ValueError, "not both", {"secret": bytes(16), "seed": 1}),
    ]
    for error, words, settings in wrong:
        with pytest.raises(error, match=words):
            koel.CuckooFilter(settings.pop("capacity", 1000), **settings)
    for bits in (0, 41):
        with pytest.raises(ValueError, match="ask for 1 to 40"):
            koel.Maplet(1000, value_bits=bits)
        with pytest.raises(ValueError, match="ask for 1 to 40"):
            koel.CountingFilter(1000, count_bits=bits)


def test_filters_that_were_not_built_alike_are_not_merged() -> None:
    makes = [
        koel.CuckooFilter(100),
        koel.CuckooFilter(100, seed=1),
        koel.CuckooFilter(100, secret=bytes(16)),
    ]
    assert [f.seed for f in makes[1:]] == [1, None]
    with pytest.raises(ValueError, match="differ in hash"):
        makes[0] |= makes[1]
    with pytest.raises(ValueError, match="^the filters differ in layout; build both with the same arg"):
        makes[0].merge(koel.CuckooFilter(100, 0.5))
    with pytest.raises(ValueError, match="'max' or 'sum'"):
        makes[0].merge(makes[0], counts="min")  # type: ignore
    with pytest.raises(TypeError):
        makes[0] | koel.CountingFilter(100)  # type: ignore


def test_similarity_and_difference() -> None:
    a, b = koel.CuckooFilter(9000), koel.CuckooFilter(9000)
    a.update(range(6000))
    b.update(range(3000, 9000))
    index = a.similarity(b)
    assert abs(float(index) - 1 / 3) < 0.01 and 0 < index.standard_error < 0.01
    parts = a.diff(b)
    for estimate, truth in [
        (parts.common, 3000),
        (parts.only_first, 3000),
        (parts.only_second, 3000),
        (parts.union, 9000),
    ]:
        assert abs(estimate.value - truth) < 6 * estimate.standard_error + 15
    assert parts.surplus_first - parts.surplus_second == len(a) - len(b)
    assert a.similarity(a).value == 1.0 and a.similarity(a) == a.copy().similarity(a)
    with pytest.raises(ValueError, match="differ in"):
        a.similarity(koel.CuckooFilter(50))


def test_a_filter_merged_with_itself() -> None:
    a = koel.CuckooFilter(1000)
    a.update(range(100))
    before = a.copy()
    a |= a
    assert a == before == (a | a)
    a.merge(a, counts="sum")
    assert a.count_many(range(100)).min() >= 2


def test_what_is_printed() -> None:
    f = koel.CuckooFilter(1000)
    f.update(range(500))
    line = repr(f)
    assert line.startswith("<koel.CuckooFilter: len ") and "\n" not in line and "%" in line
    html = f._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "0e0" not in koel.CuckooFilter(5)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "0.100 %" in html
    assert html.startswith("<table>") and "1,000" in html and "load" in html
    assert str(koel.CountingFilter(10)).startswith("<koel.CountingFilter: ")
    assert str(koel.Maplet(10, value_bits=4)).startswith("<koel.Maplet: ")


def test_no_keys_are_listed() -> None:
    for face in (
        koel.CuckooFilter(10),
        koel.CountingFilter(10),
        koel.Maplet(10, value_bits=4),
    ):
        with pytest.raises(TypeError, match="does not store its keys, so it cannot list them"):
            iter(face)  # type: ignore
        with pytest.raises(TypeError, match="unhashable"):
            hash(face)


def test_keys_that_are_none() -> None:
    f = koel.CuckooFilter(10)
    nested: Any = ("a",)
    for _ in range(100):
        nested = (nested,)
    wrong: list[tuple[type[BaseException], str, Any]] = [
        (TypeError, "not float", 1.5),
        (TypeError, "not NoneType; drop missing values", None),
        (TypeError, "not bool; use int", True),
        (TypeError, "not list", ["a"]),
        (TypeError, "not float", ("a", 1.5)),
        (TypeError, "not numpy", np.True_),
        (TypeError, "not numpy.float64", np.float64(1)),
        (TypeError, "has an element", ()),
        (TypeError, "at most 32", nested),
        (OverflowError, "more than 128 bits", 2**128),
        (OverflowError, "more than 128 bits", -(2**127) - 1),
        (TypeError, "lone surrogate", "\ud800"),
        (TypeError, "lone surrogate", ("a", "\udfff")),
    ]
    for error, words, key in wrong:
        for method in (f.__contains__, f.add, f.discard, f.remove, f.count):
            with pytest.raises(error, match=words):
                method(key)
    assert not f


def test_removal() -> None:
    f = koel.CuckooFilter(10)
    f.add("ada")
    f.remove("ada")
    with pytest.raises(KeyError, match="ada"):
        f.remove("ada")
    m = koel.Maplet(10, value_bits=4)
    m.add("ada", 1)
    with pytest.raises(KeyError):
        m.remove("ada", 2)
    m.remove("ada", 1)
    with pytest.raises(KeyError):
        m["ada"]


def test_values_of_a_maplet() -> None:
    m = koel.Maplet(1000, value_bits=4)
    wrong: list[Any] = [[16], [-1], [1.5], ["a"], np.array([True]), [1, 2]]
    for values in wrong:
        with pytest.raises(ValueError):
            m.update(["a"], values)
    with pytest.raises(ValueError, match="missing"):
        m.update(pa.array([None, "a"]), [1, 2])
    with pytest.raises(TypeError, match="pairs of key and value"):
        m.update(["abc"])  # type: ignore
    assert len(m) == 0
    m.update({})
    m.update([])
    m.update([], [])
    m.update(np.arange(3, dtype="i4"), np.array([1, 2, 3], "u1"))
    assert m[0] == [1] and m[np.int64(2)] == [3]


def test_counts_beyond_64_bits() -> None:
    c = koel.CountingFilter(10)
    assert c.add("ada", 2**64 - 1) == 2**64 - 1
    with pytest.raises(OverflowError, match="2\\^64"):
        c.add("ada")
    assert c.count("ada") == 2**64 - 1 and c.add("mary", 0) == 0
    with pytest.raises(ValueError, match="not -1"):
        c.add("ada", -1)
    with pytest.raises(OverflowError, match="more than a len"):
        len(c)


def test_file_names_that_are_not_utf8_are_keys() -> None:
    """As `os.fsdecode` gives them, and so `os.listdir`."""
    raw = b"caf\xe9.txt"
    name = os.fsdecode(raw)
    assert "\udce9" in name
    f = koel.CuckooFilter(10, 1e-9)
    assert f.add(name) and raw in f and f.contains_many([name]).all()
    assert f.add((name, 1)) and (raw, 1) in f


def test_the_recipes_for_floats_give_one_key() -> None:
    f = koel.CuckooFilter(10, 1e-9)
    values = np.array([1.5, -0.0, float("nan")])
    f.update((values + 0.0).view("u8"))
    assert all(struct.pack("<d", value + 0.0) in f for value in values.tolist())
    assert struct.pack("<d", 0.0) in f


def test_a_maplet_assigns_and_deletes_nothing() -> None:
    """An old value may be that of another key, so nothing is replaced without its name."""
    m: Any = koel.Maplet(10, value_bits=4)
    with pytest.raises(TypeError, match="assignment"):
        m["ada"] = 1
    with pytest.raises(TypeError, match="deletion"):
        del m["ada"]
    assert not m


def test_estimates_and_comparisons_can_be_pickled() -> None:
    a, b = koel.CuckooFilter(9000), koel.CuckooFilter(9000)
    a.update(range(6000))
    b.update(range(3000, 9000))
    compared = a.diff(b)
    for value in (compared, compared.jaccard):
        assert pickle.loads(pickle.dumps(value)) == value and copy.copy(value) == value


def test_sizes_and_weak_references() -> None:
    f = koel.CuckooFilter(100_000)
    assert f.nbytes < sys.getsizeof(f) < f.nbytes + 1000
    reference = weakref.ref(f)
    assert reference() is f
    del f
    gc.collect()
    assert reference() is None


def test_room_is_reserved_in_parts_of_the_same_table() -> None:
    a, b = koel.CuckooFilter(1000, grow=True), koel.CuckooFilter(1000, grow=True)
    a.reserve(1_000_000)
    b.reserve(300_000)
    b.reserve(1_000_000)
    assert a == b and a.nbytes > 10**6
    before = a.nbytes
    a.update(range(500_000))
    assert a.nbytes == before
