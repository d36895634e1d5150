"""A wrong "absent", 0 or "no difference" is no answer: what is not understood raises."""

import array
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import koel
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest


def test_the_values_of_a_mapping_are_not_lost() -> None:
    """Regression: each key of a Counter was counted once."""
    visits = Counter({"ada": 5, "mary": 1})
    counting, filter = koel.CountingFilter(100), koel.CuckooFilter(100)
    updates: list[Callable[[Any], int]] = [
        counting.update,
        lambda keys: filter.update(keys, multi=True),
    ]
    for update in updates:
        for mapping in (visits, dict(visits)):
            with pytest.raises(TypeError, match="would not be counted"):
                update(mapping)
    assert len(counting) == len(filter) == 0
    assert counting.update(visits.keys()) == filter.update(visits) == 2
    assert counting.update(visits.elements()) == 6 and counting.count("ada") == 6


def test_masked_values_of_a_maplet_are_missing() -> None:
    """Regression: what was below the mask was stored."""
    values = np.ma.array([1, 2], mask=[False, True])
    maplet = koel.Maplet(100, value_bits=8)
    for change in (maplet.update, maplet.remove_many):
        with pytest.raises(ValueError, match=r"missing \(masked\)"):
            change(["ada", "mary"], values)
    assert len(maplet) == 0
    maplet.update(["ada", "mary"], np.ma.array([1, 2], mask=False))
    assert maplet.get("mary") == [2]


def test_a_damaged_file_that_is_mapped_is_no_sound_filter(tmp_path: Path) -> None:
    """Regression: keys that damage hides were differences, and a copy of the file was sound."""
    sound = koel.CuckooFilter(1000)
    sound.update(range(900))
    sound.save(tmp_path / "sound")
    image = bytearray(sound.to_bytes())
    image[400] ^= 1
    (tmp_path / "damaged").write_bytes(image)
    damaged = koel.CuckooFilter.open(tmp_path / "damaged", mmap=True)
    compare: list[Callable[[], object]] = [
        lambda: sound.diff(damaged),
        lambda: damaged.diff(sound),
        lambda: damaged.similarity(sound),
        damaged.copy,
        lambda: koel.CuckooFilter.from_bytes(damaged.to_bytes()),
    ]
    for call in compare:
        with pytest.raises(ValueError, match="damaged"):
            call()
    damaged.save(tmp_path / "copy")
    with pytest.raises(ValueError, match="damaged"):
        koel.CuckooFilter.open(tmp_path / "copy")
    mapped = koel.CuckooFilter.open(tmp_path / "sound", mmap=True)
    assert mapped.diff(sound).only_first.value == 0 and mapped.to_bytes() == sound.to_bytes()


def test_a_filter_says_how_the_command_made_its_keys(tmp_path: Path) -> None:
    assert koel.CuckooFilter(100).application == bytes(8)
    if "KOEL" not in os.environ:
        pytest.skip("needs the command: KOEL=path/to/koel")
    build = [os.environ["KOEL"], "build", "--ignore-case", "-o", "list"]
    subprocess.run(build, input=b"Ada", cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    listed = koel.CuckooFilter.open(tmp_path / "list")
    assert listed.application == bytes([1, 0, 0, 0, 0, 0, 0, 0])
    assert "ada" in listed and "Ada" in listed


def test_a_missing_key_of_pandas_is_not_absent() -> None:
    """Regression: it was answered with False, as a key that is not in."""
    filter = koel.CuckooFilter(100)
    filter.update(["ada", 1])
    calls: list[Callable[[Any], object]] = [
        filter.contains_many,
        filter.count_many,
        filter.add_many,
        filter.remove_many,
        filter.update,
        filter.refute_many,
        koel.FilterPlan(100).split,
    ]
    series = [
        pd.Series(["ada", missing, "ada", missing], dtype=object)
        for missing in (None, float("nan"), pd.NA, pd.NaT)
    ]
    series += [pd.Series(["ada", None], dtype=dtype) for dtype in ("str", "string", "category")]
    series += [pd.Series([1, None], dtype=dtype) for dtype in ("Int64", "int64[pyarrow]")]
    for call in calls:
        for keys in series:
            for batch in (keys, pd.Index(keys), keys.array):
                with pytest.raises(TypeError, match="position 1 is missing; pass dropna"):
                    call(batch)
        for missing in (None, float("nan"), pd.NA):
            for batch in (["ada", missing], np.array(["ada", missing], dtype=object)):
                with pytest.raises(TypeError, match="a key is"):
                    call(batch)
    assert len(filter) == 2
    for keys in series:
        assert filter.contains_many(keys.dropna()).all()
    nulls: Any = filter.contains_many(pa.array(series[0], from_pandas=True))
    assert nulls.to_pylist() == [True, None, True, None]


def test_what_holds_bytes_is_one_key_and_no_batch() -> None:
    """Regression: a `memoryview` of bytes was as many integers, which were "absent"."""
    filter = koel.CuckooFilter(100)
    filter.add(b"ada")
    calls: list[Callable[[Any], object]] = [
        filter.contains_many,
        filter.update,
        filter.remove_many,
        koel.FilterPlan(100).split,
    ]
    whole = [b"ada", bytearray(b"ada"), memoryview(b"ada"), pa.py_buffer(b"ada")]
    for call in calls:
        for keys in (*whole, memoryview(b"ada")[::-1], memoryview(b"ada").cast("c")):
            with pytest.raises(TypeError, match=r"use \[key\], or numpy.frombuffer\(keys, 'u1'\)"):
                call(keys)
    assert filter.contains_many(whole[:3]).all() and len(filter) == 1
    filter.update(np.frombuffer(b"ada", "u1"))
    assert filter.contains_many(b for b in b"ada").all()
    assert filter.contains_many(array.array("B", b"ada")).all()
    assert filter.contains_many(memoryview(array.array("I", b"ada\0"))).tolist() == [False]


def test_lines_of_a_file_are_no_keys(tmp_path: Path) -> None:
    """Regression: each line was "absent", since it ends with a line break."""
    names = tmp_path / "names.txt"
    names.write_text("ada\nmary\n")
    filter = koel.CuckooFilter(100)
    filter.update(["ada", "mary"])
    calls: list[Callable[[Any], object]] = [
        filter.contains_many,
        filter.update,
        filter.count_many,
        filter.remove_many,
        koel.FilterPlan(100).split,
    ]
    for call in calls:
        for mode in ("r", "rb"):
            with open(names, mode) as file, pytest.raises(TypeError, match="line breaks"):
                call(file)
    with open(names) as file:
        assert filter.contains_many(line.rstrip("\r\n") for line in file).all()
    assert len(filter) == 2


def test_a_value_that_no_pair_can_have_is_refused() -> None:
    """Regression: `discard` and `replace` answered False, as for a pair that is not in."""
    maplet = koel.Maplet(100, value_bits=8)
    maplet.add("ada", 7)
    calls: list[Callable[[], object]] = [
        lambda: maplet.discard("ada", 256),
        lambda: maplet.remove("ada", 256),
        lambda: maplet.replace("ada", 256, 7),
        lambda: maplet.replace("ada", 7, 256),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="256 does not fit into the 8 bits"):
            call()
    assert maplet.get("ada") == [7] and not maplet.discard("ada", 255)


def test_ages_have_the_shape_of_the_keys() -> None:
    """Regression: an array without dimensions, or with two, became one with one."""
    seen = koel.ExpiringFilter(100, window=60)
    seen.update([5], now=1000)
    for keys in (np.array(5), np.array([[5, 6], [7, 5]])):
        ages = seen.age_many(keys)
        assert ages.shape == keys.shape and (ages == np.where(keys == 5, 0, -1)).all()


def test_a_wrong_capacity_is_named() -> None:
    classes: list[Callable[[Any], object]] = [
        koel.CuckooFilter,
        koel.CountingFilter,
        koel.FilterPlan,
        lambda capacity: koel.Maplet(capacity, value_bits=8),
        lambda capacity: koel.ExpiringFilter(capacity, window=60),
    ]
    for make in classes:
        with pytest.raises(TypeError, match="^capacity: expected an int, not float"):
            make(1e6)
        with pytest.raises(ValueError, match="^capacity: .* not -1"):
            make(-1)
