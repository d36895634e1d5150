"""Files, bytes, pickles and copies; and what is not a sound file."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import koel
import pytest

Face = koel.CuckooFilter | koel.CountingFilter | koel.Maplet
makers: dict[str, Callable[[], Face]] = {
    "filter": lambda: koel.CuckooFilter(1000),
    "growable": lambda: koel.CuckooFilter(1000, grow_from=1000),
    "secret": lambda: koel.CuckooFilter(1000, secret=bytes(range(16))),
    "counting": lambda: koel.CountingFilter(1000, count_bits=4),
    "maplet": lambda: koel.Maplet(1000, value_bits=8),
}


def fill(face: Face) -> None:
    if isinstance(face, koel.Maplet):
        face.update({f"key {i}": i % 256 for i in range(900)})
    else:
        face.update(f"key {i % 900}" for i in range(1200))


@pytest.fixture(params=makers)
def face(request: pytest.FixtureRequest) -> Face:
    face = makers[request.param]()
    fill(face)
    return face


def test_every_way_back_gives_an_equal_filter(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "keys.koel"
    face.save(path)
    assert path.read_bytes() == face.to_bytes() and path.stat().st_size == face.nbytes
    kind = type(face)
    for other in (
        kind.open(path),
        kind.open(str(path), mmap=True),
        kind.open(path, mmap=True).copy(),
        kind.from_bytes(face.to_bytes()),
        kind.from_bytes(bytearray(face.to_bytes())),
        kind.from_bytes(memoryview(face.to_bytes())),
        pickle.loads(pickle.dumps(face)),
        copy.copy(face),
        copy.deepcopy(face),
    ):
        assert other == face and not other != face and len(other) == len(face)
        assert "key 7" in other and other.contains_many(["key 7", "absent!"]).tolist() == [1, 0]


def test_copies_change_alone(face: Face) -> None:
    other = face.copy()
    other.clear()
    assert len(other) == 0 and "key 7" in face and other != face and face != 7


def test_a_mapped_file_cannot_be_changed(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "keys.koel"
    face.save(path)
    mapped = type(face).open(path, mmap=True)
    mapped.verify()
    assert mapped.readonly and not face.readonly
    changes: list[Callable[[], object]] = [mapped.clear, mapped.shrink_to_fit]
    if isinstance(mapped, koel.Maplet):
        changes += [lambda: mapped.add("a", 1), lambda: mapped.update({"a": 1})]
        changes += [lambda: mapped.replace("key 7", 7, 8), lambda: mapped.discard("key 7", 7)]
    else:
        changes += [lambda: mapped.add("a"), lambda: mapped.update(["a"])]
        changes += [lambda: mapped.discard("key 7"), lambda: mapped.remove_many(["key 7"])]
    if isinstance(mapped, koel.CuckooFilter):
        changes += [lambda: mapped.merge(mapped.copy()), lambda: mapped.reserve(1)]
    for change in changes:
        with pytest.raises(ValueError, match="opened with mmap=True"):
            change()
    assert mapped == face


def test_a_mapped_file_is_pickled_by_its_path(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    face.save(tmp_path / "keys.koel")
    mapped = type(face).open("keys.koel", mmap=True)
    pickled = pickle.dumps(mapped)
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert len(pickled) < 500 and again.readonly and again == face
    (tmp_path / "keys.koel").unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickled)
    assert "key 7" in again


def test_a_file_may_be_replaced_while_it_is_mapped(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "keys.koel"
    face.save(path)
    mapped = type(face).open(path, mmap=True)
    empty = face.copy()
    empty.clear()
    empty.save(path)
    assert "key 7" in mapped and "key 7" not in type(face).open(path, mmap=True)


def test_damaged_bytes_are_refused(face: Face, tmp_path: Path) -> None:
    sound = face.to_bytes()
    for at in [*range(0, 192, 7), *range(192, len(sound), 97)]:
        bytes_ = bytearray(sound)
        bytes_[at] ^= 1
        with pytest.raises(ValueError, match="damaged|Koel filter|version|open it as"):
            type(face).from_bytes(bytes_)
    path = tmp_path / "cut.koel"
    for length in (0, 1, 191, 192, len(sound) - 1):
        path.write_bytes(sound[:length])
        for mmap in (False, True):
            with pytest.raises((ValueError, OSError), match="cut.koel"):
                type(face).open(path, mmap=mmap)


def test_wrong_files_name_their_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        koel.CuckooFilter.open(tmp_path / "no.koel")
    assert missing.value.filename == str(tmp_path / "no.koel")
    with pytest.raises(OSError):
        koel.CuckooFilter(10).save(tmp_path / "no" / "no.koel")
    path = tmp_path / "maplet.koel"
    koel.Maplet(10, value_bits=4).save(path)
    for mmap in (False, True):
        with pytest.raises(ValueError, match="maplet.koel: a maplet, not a filter"):
            koel.CuckooFilter.open(path, mmap=mmap)
    expiring = koel.ExpiringFilter(10, window=5).to_bytes()
    with pytest.raises(ValueError, match="^an expiring filter, not a maplet; open it as an expiring filter$"):
        koel.Maplet.from_bytes(expiring)
    with pytest.raises(TypeError, match="not int"):
        koel.CuckooFilter.from_bytes(5)  # type: ignore
