"""Batches of every type answer as single keys do, nulls included."""

import array
from collections.abc import Callable
from typing import Any

import koel
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

calm = settings(max_examples=100)

integer_types = st.one_of(
    hnp.integer_dtypes(endianness="?"), hnp.unsigned_integer_dtypes(endianness="?")
)


@st.composite
def views(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """An array of integers of any type, or a slice of one, in any memory order."""
    dtype = draw(integer_types)
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=7))
    whole = draw(hnp.arrays(dtype, shape))
    if draw(st.booleans()):
        whole = np.asfortranarray(whole)
    index = draw(hnp.basic_indices(whole.shape, allow_newaxis=False, allow_ellipsis=False))
    part: Any = whole[index]
    return part if np.ndim(part) else whole


@calm
@given(keys=views(), others=views())
def test_numpy_integers_are_the_integers_of_python(
    keys: np.ndarray[Any, Any], others: np.ndarray[Any, Any]
) -> None:
    f = koel.CuckooFilter(1000, 1e-9)
    distinct = set(np.ravel(keys).tolist())
    assert f.update(keys) == len(distinct) == len(f)
    assert all(key in f for key in distinct)
    for batch in (keys, others):
        found = f.contains_many(batch)
        assert found.dtype == np.bool_ and found.shape == batch.shape
        assert np.ravel(found).tolist() == [key in f for key in np.ravel(batch).tolist()]
        counts = f.count_many(batch)
        assert counts.dtype == np.uint64 and counts.shape == batch.shape
    assert np.ravel(f.remove_many(keys)).sum() == len(distinct) and len(f) == 0


@pytest.mark.parametrize("dtype", ["<u8", "<i8", ">u8", "<u4", "<i2"])
def test_arrays_that_are_not_aligned(dtype: str) -> None:
    keys = np.arange(10, dtype=dtype)
    moved = np.frombuffer(b"x" + keys.tobytes(), dtype=dtype, offset=1)
    assert not moved.flags.aligned
    f = koel.CuckooFilter(100, 1e-9)
    assert f.update(moved) == 10 and f.contains_many(moved[::-1]).all()
    assert f.contains_many(range(10)).all()


texts = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
numbers = st.lists(st.none() | st.integers(-(2**31), 2**31 - 1))
Maker = Callable[[list[Any]], Any]

text_makers: dict[str, Maker] = {
    "string": lambda keys: pa.array(keys, pa.string()),
    "large_string": lambda keys: pa.array(keys, pa.large_string()),
    "string_view": lambda keys: pa.array(keys, pa.string_view()),
    "slice": lambda keys: pa.array(["x", None, *keys, "y"], pa.string())[2:-1],
    "dictionary": lambda keys: pa.array(keys, pa.string()).dictionary_encode(),
    "chunks": lambda keys: pa.chunked_array([keys[:3], [], keys[3:]], pa.string()),
    "polars": lambda keys: pl.Series(keys, dtype=pl.String),
    "categorical": lambda keys: pl.Series(keys, dtype=pl.Categorical),
    "pandas": lambda keys: pd.Series(keys, dtype="str"),
    "objects": lambda keys: pd.Series(keys, dtype=object),
    "index": lambda keys: pd.Index(pd.Series(keys, dtype="str")),
}
bytes_makers: dict[str, Maker] = {
    "binary": lambda keys: pa.array(keys, pa.binary()),
    "large_binary": lambda keys: pa.array(keys, pa.large_binary()),
    "binary_view": lambda keys: pa.array(keys, pa.binary_view()),
    "polars": lambda keys: pl.Series(keys, dtype=pl.Binary),
}
number_makers: dict[str, Maker] = {
    "int32": lambda keys: pa.array(keys, pa.int32()),
    "int64": lambda keys: pa.array(keys, pa.int64()),
    "slice": lambda keys: pa.array([1, *keys, None], pa.int64())[1:-1],
    "polars": lambda keys: pl.Series(keys, dtype=pl.Int64),
    "pandas": lambda keys: pd.Series(keys, dtype="Int64"),
    "chunks": lambda keys: pa.chunked_array([keys[:1], keys[1:]], pa.int64()),
}


@pytest.mark.parametrize("name", text_makers)
@settings(max_examples=30)
@given(keys=texts)
def test_strings_with_nulls(name: str, keys: list[str | None]) -> None:
    assert_batch_answers_as_single_keys(text_makers[name](keys), keys)


@pytest.mark.parametrize("name", bytes_makers)
@settings(max_examples=30)
@given(keys=st.lists(st.none() | st.binary(max_size=20)))
def test_bytes_with_nulls(name: str, keys: list[bytes | None]) -> None:
    assert_batch_answers_as_single_keys(bytes_makers[name](keys), keys)


@pytest.mark.parametrize("name", number_makers)
@settings(max_examples=30)
@given(keys=numbers)
def test_integers_with_nulls(name: str, keys: list[int | None]) -> None:
    assert_batch_answers_as_single_keys(number_makers[name](keys), keys)


def assert_batch_answers_as_single_keys(batch: Any, keys: list[Any]) -> None:
    present = [key for key in keys if key is not None]
    f = koel.CuckooFilter(1000, 1e-9)
    if isinstance(batch, (pd.Series, pd.Index)) and None in keys:
        with pytest.raises(TypeError, match=f"position {keys.index(None)} is missing"):
            f.update(batch)
        batch, keys = batch.dropna(), present
    assert f.update(batch) == len(set(present)) == len(f)
    assert all(key in f for key in present)
    for key in set(present[::2]):
        f.remove(key)
    assert_answers(f.contains_many(batch), batch, keys, lambda key: key in f)
    assert_answers(f.count_many(batch), batch, keys, f.count)
    again = f.copy()
    assert_answers(f.add_many(batch), batch, keys, again.add)
    assert_answers(f.remove_many(batch), batch, keys, again.discard)
    assert f == again


def assert_answers(answers: Any, batch: Any, keys: list[Any], single: Callable[[Any], Any]) -> None:
    expected = [None if key is None else single(key) for key in keys]
    if type(batch).__module__.startswith("pandas"):
        assert isinstance(answers, np.ndarray)
        assert answers.tolist() == expected
        return
    assert type(answers).__module__.split(".")[0] == type(batch).__module__.split(".")[0]
    assert isinstance(answers, pa.ChunkedArray) == isinstance(batch, pa.ChunkedArray)
    got = answers.to_list() if isinstance(answers, pl.Series) else answers.to_pylist()
    assert got == expected


def test_many_chunks_are_one_batch() -> None:
    """More keys than one chunk has, of each kind."""
    n = 600_000
    words = np.arange(n, dtype=np.uint64)
    f = koel.CuckooFilter(n, 0.001)
    added = f.update(words)
    assert n - 2000 < added <= n and len(f) == added
    narrow = words.astype(np.uint32)
    swapped = words.astype(">u8")
    for keys in (words, narrow, swapped, words.tolist(), pa.array(words), pa.array(narrow)):
        assert np.all(f.contains_many(keys))
    nulls = pa.array(words, mask=words % 3 == 0)
    found: Any = f.contains_many(nulls)
    assert found.null_count == n // 3 and found.drop_null().true_count == n - n // 3
    absent = f.contains_many(words + np.uint64(n))
    assert 0 < absent.sum() < 2 * n * 0.001


def test_other_iterables() -> None:
    f = koel.CuckooFilter(1000, 1e-9)
    assert f.update(range(3)) == 3
    assert f.update({"a": 1, "b": 2}) == 2
    assert f.update(key for key in ("a", "c")) == 1
    assert f.update({b"x", b"y"}) == 2
    assert f.update(array.array("q", [1, 50])) == 1
    assert f.update(memoryview(array.array("I", [50, 60]))) == 1
    assert f.update(np.array(["a", "d"])) == 1
    assert f.update(np.array([b"x", b"z"])) == 1
    assert f.update(np.array(["a", 7, ("t", 1)], dtype=object)[:2]) == 1
    empties: list[Any] = [[], (), np.array([]), np.array([], "u8"), pa.array([]), pl.Series([])]
    for empty in empties:
        assert f.update(empty) == 0 == len(f.contains_many(empty))
    assert len(f.contains_many([])) == 0 and len(f.contains_many(np.array([]))) == 0


def test_an_arrow_array_of_another_library_gives_an_arrow_array() -> None:
    class Wrapped:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return pa.array(["a", None]).__arrow_c_array__()

    f = koel.CuckooFilter(10)
    f.add("a")
    answer = f.contains_many(Wrapped())
    assert isinstance(answer, koel.ArrowArray) and len(answer) == 2
    assert pa.array(answer).to_pylist() == [True, None]


def test_a_stream_is_read_once_and_its_error_is_raised() -> None:
    def batches() -> Any:
        yield pa.record_batch({"key": ["a", "b"]})
        raise OSError("the disk is gone")

    schema = pa.schema({"key": pa.string()})
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(TypeError, match="one column, not a table"):
        koel.CuckooFilter(10).update(reader)


class Hostile:
    """Fails in the middle of an iteration."""

    def __iter__(self) -> Any:
        yield "a"
        raise RuntimeError("no more")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("abc", r"use \[key\]"),
        (b"abc", r"use \[key\], or numpy.frombuffer"),
        (5, "not iterable"),
        ([1.5], "not float"),
        ([None], "not NoneType"),
        ([True], "not bool"),
        ([["a"]], "not list"),
        (np.array([1.5]), "not float64"),
        (np.array([True]), "not bool"),
        (np.array(["2020-01-01"], "M8[D]"), "not datetime64"),
        (pa.array([1.5]), "not Float64"),
        (pa.array([True]), "not Boolean"),
        (pa.table({"a": [1]}), "one column"),
        (pl.DataFrame({"a": [1]}), "one column"),
        (pd.DataFrame({"a": [1]}), "one column"),
        (pd.Series([1, None]), "not float64"),
        (koel.CuckooFilter(10), "does not store its keys"),
    ],
)
def test_what_is_not_a_batch_of_keys(keys: Any, words: str) -> None:
    f = koel.CuckooFilter(10)
    for method in (f.contains_many, f.update, f.add_many, f.remove_many, f.count_many):
        with pytest.raises(TypeError, match=words):
            method(keys)
    assert len(f) == 0


def test_a_failing_iterable_raises_its_own_error() -> None:
    with pytest.raises(RuntimeError, match="no more"):
        koel.CuckooFilter(10).update(Hostile())


def test_a_width_that_is_too_small() -> None:
    f = koel.CuckooFilter(10)
    for keys in (np.array([1], "u8"), pa.array([1], pa.int64())):
        with pytest.raises(TypeError, match="keys of 64 bits do not fit"):
            f.update(keys, width=32)
    for key in (2**32, -(2**31) - 1):
        with pytest.raises(OverflowError, match="width=32"):
            f.update([key], width=32)
    with pytest.raises(ValueError, match="not 7"):
        f.update([1], width=7)  # type: ignore


def test_an_array_without_dimensions_has_such_an_answer() -> None:
    f = koel.CuckooFilter(1000)
    f.update([5, "a"])
    for keys in (np.array(5), np.array("a"), np.ma.array(5), np.array(5, dtype=object)):
        answers: list[Any] = [
            f.contains_many(keys), f.count_many(keys), f.add_many(keys), f.remove_many(keys),
        ]
        assert [answer.shape for answer in answers] == [()] * 4
        assert [answer.item() for answer in answers] == [True, 1, False, True]
        f.update([5, "a"])
    assert f.contains_many(np.ma.array(5, mask=True)).shape == ()
    assert f.contains_many(np.empty((0, 3), int)).shape == (0, 3)


def test_what_is_no_column_of_keys_is_refused_in_words_of_ours() -> None:
    f = koel.CuckooFilter(1000)
    frame = pl.DataFrame({"name": ["a"]})
    others: list[tuple[Any, str]] = [
        (frame, r"not a DataFrame; pass frame\[name\]"),
        (frame.lazy(), r"not a LazyFrame; pass frame.collect\(\)\[name\]"),
        (pl.Series([1], dtype=pl.Int128), r"Series of Int128 is no batch; pass to_list\(\)"),
        (pl.Series([object()], dtype=pl.Object), r"pass to_list\(\)"),
        (pd.DataFrame({"name": ["a"]}), r"pass df\[name\]"),
    ]
    for keys, words in others:
        for batch in (f.contains_many, f.add_many, f.update, f.refute_many):
            with pytest.raises(TypeError, match=words):
                batch(keys)
    rows = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    f.add(("b", 2))
    assert f.contains_many(rows).tolist() == [False, True]
    assert f.update(rows) == 1 and ("a", 1) in f


def test_a_wrong_setting_is_named() -> None:
    untyped: Any = koel.CuckooFilter
    for arguments, error, words in [
        ((1e6,), TypeError, "(?s)expected an int, not float.*capacity"),
        ((-1,), ValueError, "(?s)from 0 to.*capacity"),
        (("many",), TypeError, "capacity"),
        ((1000, 0), ValueError, r"error_rate is above 0 and below 1, such as 0.001, not 0.0"),
        ((1000, 1.5), ValueError, "error_rate.*not 1.5"),
        ((1000, "low"), TypeError, "error_rate"),
    ]:
        with pytest.raises(error, match=words):
            untyped(*arguments)
