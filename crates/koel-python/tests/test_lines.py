"""Filters that the command built from lines are asked as the command asks them."""

import os
import pickle
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow
import pytest
import xxhash

import koel

needs_koel = pytest.mark.skipif("KOEL" not in os.environ, reason="needs KOEL=path/to/koel")


def built(folder: Path, lines: str, *options: str) -> koel.CuckooFilter:
    path = folder / "list.koel"
    build = [os.environ["KOEL"], "build", *options, "-o", str(path)]
    subprocess.run(build, input=lines.encode(), check=True, capture_output=True)
    return koel.CuckooFilter.open(path)


@needs_koel
def test_case_and_white_space_are_those_of_the_list(tmp_path: Path) -> None:
    names = built(tmp_path, "Ada\n mary \n", "--ignore-case", "--trim")
    assert names.line_options == "--ignore-case --trim"
    for key in (bytearray(b" Ada "), memoryview(b"aDA")):
        assert key in names
    keys = ["ADA", "MARY", "eve"]
    for batch in (keys, iter(keys), np.array(keys), pyarrow.array(keys), polars.Series(keys)):
        assert np.asarray(names.contains_many(batch)).tolist() == [True, True, False]
    dictionary = pyarrow.array(keys + keys).dictionary_encode()
    assert names.contains_many(dictionary).to_pylist() == [True, True, False] * 2
    assert "ADA" in pickle.loads(pickle.dumps(names)) and "ADA" in names.copy()


@needs_koel
def test_what_is_no_host_and_no_text_is_an_error(tmp_path: Path) -> None:
    blocked = built(tmp_path, "ads.example\n", "--format", "hosts")
    batches = ["two words"], pyarrow.array(["two words"]), np.array(["two words"])
    asks: list[Callable[[], Any]] = [
        lambda: "two words" in blocked,
        lambda: blocked.add("two words"),
        lambda: blocked.contains_url("data:text/html,x"),
        *(partial(blocked.contains_many, batch) for batch in batches),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match="are hosts, and .* has none"):
            ask()
    numbers = [1], np.array([1]), np.array([1], "u1"), pyarrow.array([1], "u8"), [("a",)]
    asks = [
        lambda: 1 in blocked,
        *(partial(blocked.contains_many, batch) for batch in numbers),
    ]
    for ask in asks:
        with pytest.raises(TypeError, match="made of lines"):
            ask()
    # What stands before the text that has no host is done, as in every batch.
    with pytest.raises(ValueError) as caught:
        blocked.update(pyarrow.array(["new.example", "two words"]))
    assert getattr(caught.value, "done") == 1 and "new.example" in blocked
    assert blocked.contains_many([]).shape == (0,)


def with_application(first: int) -> koel.CuckooFilter:
    """A filter whose first application byte is another, with the checksum of the header."""
    names = koel.CuckooFilter(10)
    names.add("Ada")
    image = bytearray(names.to_bytes())
    image[88] = first
    image[184:192] = xxhash.xxh3_64_intdigest(bytes(image[:184])).to_bytes(8, "little")
    return koel.CuckooFilter.from_bytes(image)


def test_a_filter_of_unknown_options_is_refused_when_it_is_asked() -> None:
    later = with_application(8)
    assert later.line_options is None and len(later) == 1
    for ask in (
        lambda: later.add("x"),
        lambda: later.contains_many(["Ada"]),
        lambda: later.contains_many(np.array([1])),
    ):
        with pytest.raises(ValueError, match="use a later version"):
            ask()


def test_bytes_of_another_program_leave_keys_as_they_are() -> None:
    own = with_application(0x80)
    assert own.line_options == "" and 1 not in own
