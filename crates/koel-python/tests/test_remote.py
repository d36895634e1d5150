"""Filters that are asked where they lie."""

from __future__ import annotations

import numpy as np
import pytest

import koel


def _filter() -> koel.CuckooFilter:
    filter = koel.CuckooFilter(50_000, error_rate=0.01)
    filter.update(range(40_000), multi=True)
    for key in range(50_000, 52_000):
        filter.refute(key)
    return filter


class _Counted:
    """A reader that counts, and whose file can be replaced."""

    def __init__(self, file: bytes) -> None:
        self.file = file
        self.ranges: list[tuple[int, int]] = []

    def read_range(self, start: int, end: int) -> bytes:
        self.ranges.append((start, end))
        return self.file[start:end]


@pytest.mark.parametrize("options", [{}, {"gap": 0}, {"page": 4096}, {"page": 1 << 40}])
def test_answers_are_those_of_the_whole_filter(options: dict[str, int]) -> None:
    filter = _filter()
    reader = _Counted(filter.to_bytes())
    remote = koel.open_remote(reader, **options)
    keys = np.arange(30_000, 80_000)
    assert (remote.contains_many(keys) == filter.contains_many(keys)).all()
    for key in range(39_900, 40_100):
        assert (key in remote) == (key in filter)
    read = sum(end - start for start, end in reader.ranges)
    assert (remote.requests, remote.bytes_read) == (len(reader.ranges), read)
    assert (len(remote), remote.capacity, remote.nbytes) == (40_000, 50_000, len(reader.file))
    assert (remote.error_rate, remote.corrections) == (0.01, filter.corrections)
    assert remote.false_positive_rate == filter.false_positive_rate


def test_a_reader_may_read_many_ranges_at_once() -> None:
    filter = _filter()
    file, calls = filter.to_bytes(), []

    class Reader(_Counted):
        def read_ranges(self, ranges: list[tuple[int, int]]) -> list[bytes]:
            calls.append(len(ranges))
            return [file[start:end] for start, end in ranges]

    remote = koel.open_remote(Reader(file), gap=0)
    assert remote.contains_many(range(100)).all()
    assert len(calls) == 1 and calls[0] > 150

    class Forgets(_Counted):
        def read_ranges(self, ranges: list[tuple[int, int]]) -> list[bytes]:
            return [file[start:end] for start, end in ranges[1:]]

    with pytest.raises(ValueError, match="read_ranges returned"):
        koel.open_remote(Forgets(file)).contains_many(range(100))


def test_a_file_that_was_replaced_is_noticed() -> None:
    filter = _filter()
    reader = _Counted(filter.to_bytes())
    remote = koel.open_remote(reader)
    assert 1 in remote
    filter.discard(1)
    reader.file = filter.to_bytes()
    with pytest.raises(ValueError, match="the file was replaced; open it again"):
        assert 1 in remote
    assert 1 not in koel.open_remote(reader)


def test_what_is_no_range_of_a_filter_is_refused() -> None:
    file = _filter().to_bytes()
    with pytest.raises(ValueError, match="not a Koel filter"):
        koel.open_remote(lambda start, end: (b"<!doctype html>" * 100)[start:end])
    with pytest.raises(ValueError, match="cuts or compresses it"):
        koel.open_remote(lambda start, end: file[start : end - 1])
    with pytest.raises(ValueError, match="open it as a counting filter"):
        counting = koel.CountingFilter(10).to_bytes()
        koel.open_remote(lambda start, end: counting[start:end])
    with pytest.raises(TypeError):
        koel.open_remote(lambda start, end: 7)  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        koel.open_remote(lambda start, end: bytes(1 // 0))
    remote = koel.open_remote(lambda start, end: file[start:end])
    with pytest.raises(TypeError):
        assert 1.5 in remote  # type: ignore[operator]
    with pytest.raises(TypeError):
        list(remote)  # type: ignore[call-overload]


def test_a_url_is_asked_in_one_batch() -> None:
    filter = koel.CuckooFilter(10)
    filter.add("ads.example.org")
    file = filter.to_bytes()
    remote = koel.open_remote(lambda start, end: file[start:end])
    assert remote.line_options == ""
    assert remote.contains_url("https://www.ads.example.org/x")
    assert not remote.contains_url("https://example.org")
    before = remote.requests
    remote.contains_url("https://a.b.c.example.org")
    # Near ranges are one: a small filter is read with one request, and its header with another.
    assert remote.requests == before + 2
