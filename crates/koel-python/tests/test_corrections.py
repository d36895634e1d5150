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


def test_corrections_are_content() -> None:
    f, g = blocked(), blocked()
    assert f == g
    wrong = [key for key in ABSENT if key in f]
    for key in wrong[:3]:
        f.refute(key)
    assert f != g
    compared = f.diff(g)
    assert (compared.corrections_first, compared.corrections_second) == (3, 0)
    assert (compared.surplus_first, compared.surplus_second) == (0, 0)
    assert pickle.loads(pickle.dumps(compared)) == compared
    assert "; 3 and 0 corrections of one alone" in repr(compared)
    assert "correction" not in repr(f.diff(f))
    for key in wrong[:3]:
        g.refute(key)
    assert f == g
    assert f.diff(g).corrections_first == 0


def test_members_are_not_refuted_by_accident() -> None:
    f = blocked()
    before = f.to_bytes()
    for keys in ([*range(30)], iter(range(30)), np.arange(2000), [*range(900), *ABSENT]):
        with pytest.raises(ValueError, match="are reported, and chance .* force=True"):
            f.refute_many(keys)
    assert f.to_bytes() == before
    assert f.refute_many([1, 2, 3, 4] * 9) == 4
    assert f.refute_many(range(10, 40), force=True) == 30
    assert not f.contains_many(range(10, 40)).any()
    f.update(range(2000))
    assert f.contains_many(MEMBERS).all()
    wrong = [key for key in ABSENT if key in f]
    with pytest.raises(ValueError, match="force=True"):
        f.refute_many(wrong)
    assert f.refute_many(wrong, force=True) == len(wrong)


def test_keys_that_raise_in_between_leave_the_filter_as_it_was() -> None:
    f = blocked()
    before = f.to_bytes()

    def keys() -> Iterator[int]:
        yield from ABSENT
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        f.refute_many(keys())
    with pytest.raises(TypeError):
        f.refute_many([*ABSENT, 1.5])  # type: ignore
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
