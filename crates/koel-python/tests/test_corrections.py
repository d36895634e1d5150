"""Corrections: refuted keys are not reported, members are, and a refusal changes nothing."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import koel
import numpy as np
import pytest

MEMBERS = range(2000)
ABSENT = range(10_000, 40_000)


def blocked() -> koel.CuckooFilter:
    f = koel.CuckooFilter(len(MEMBERS), error_rate=0.05)
    f.update(MEMBERS, multi=True)
    return f


def test_a_comparison_tells_corrections() -> None:
    f, g = blocked(), blocked()
    wrong = [key for key in ABSENT if key in f]
    for key in wrong[:3]:
        f.refute(key)
    compared = f.diff(g)
    assert pickle.loads(pickle.dumps(compared)) == compared
    assert "; 3 and 0 corrections of one alone" in repr(compared)
    assert "correction" not in repr(f.diff(f))


def test_members_are_not_refuted_by_accident() -> None:
    f = blocked()
    before = f.to_bytes()
    for keys in ([*range(30)], iter(range(30)), np.arange(2000), [*range(900), *ABSENT]):
        with pytest.raises(ValueError, match="are reported, and chance .* force=True"):
            f.refute_many(keys)
    assert f.to_bytes() == before
    assert f.refute_many([1, 2, 3, 4] * 9) == 4


def test_keys_that_raise_in_between_leave_the_filter_as_it_was() -> None:
    f = blocked()
    before = f.to_bytes()

    def keys() -> Iterator[int]:
        yield from ABSENT
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        f.refute_many(keys())
    assert f.to_bytes() == before


def test_a_mapped_filter_is_not_changed(tmp_path: Path) -> None:
    f = blocked()
    f.save(tmp_path / "f.koel")
    mapped = koel.CuckooFilter.open(tmp_path / "f.koel", mmap=True)
    wrong = next(key for key in ABSENT if key in f)
    with pytest.raises(ValueError, match="read-only|mmap"):
        mapped.refute(wrong)
    with pytest.raises(ValueError, match="read-only|mmap"):
        mapped.refute_many([wrong])
    # A mapped filter is patched into one of its own.
    f.refute(wrong)
    patched = mapped.patched(mapped.patch_to(f))
    assert wrong not in patched
    assert wrong in mapped
