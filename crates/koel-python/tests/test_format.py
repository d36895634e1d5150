"""The bytes are those of docs/FORMAT.md, so Rust and the command read them."""

import re
from pathlib import Path

import koel
import numpy as np

FORMAT = Path(__file__).parents[3] / "docs" / "FORMAT.md"


def image(title: str) -> bytes:
    """The image below a headline. Lines that are left out are zeros."""
    section = FORMAT.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0].split("\n# ")[0]
    length = re.search(r"([0-9]+)\nbytes|([0-9]+) bytes", section)
    lines = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)$", section, re.M)
    assert lines
    parts = {int(at, 16): bytes.fromhex(text) for at, text in lines}
    end = max(at + len(part) for at, part in parts.items())
    whole = bytearray(int(next(filter(None, length.groups()))) if length else end)
    for at, part in parts.items():
        whole[at : at + len(part)] = part
    return bytes(whole)


def test_a_filter_has_the_bytes_of_the_format() -> None:
    f = koel.CuckooFilter(1, 0.03, seed=42)
    f.update(["example.org"] + 5 * ["twice"], multi=True)
    assert f.to_bytes() == image("A whole filter")


def test_a_maplet_has_the_bytes_of_the_format() -> None:
    m = koel.Maplet(1, 0.03, value_bits=40, seed=42)
    m.add("example.org", 513)
    m.add("twice", 2**40 - 1)
    m.add("twice", 0)
    assert m.to_bytes() == image("A whole maplet")


def test_a_counting_filter_has_the_bytes_of_the_format() -> None:
    c = koel.CountingFilter(1, 0.03, count_bits=2, seed=42)
    c.add("example.org")
    assert c.add("often", 1000) == 1000
    assert c.to_bytes() == image("A whole counting filter")


def test_an_expiring_filter_has_the_bytes_of_the_format() -> None:
    f = koel.ExpiringFilter(1, 0.03, window=60, steps=6, when_full="evict", seed=42)
    assert f.add("example.org", now=1000) and f.add("later", now=1035)
    assert f.to_bytes() == image("A whole expiring filter")


def test_keys_of_other_types_have_the_bytes_of_the_format() -> None:
    inner = b"\x01" + bytes(7) + b"a"
    assert_same_key((("a",), "b"), b"\x09" + bytes(7) + inner + b"\x01" + bytes(7) + b"b")
    assert_same_key(("a", b"\0"), inner + b"\x01" + bytes(7) + b"\0")
    assert_same_key(bytearray(b"x"), b"x")
    assert_same_key(memoryview(b"xyz")[::2], b"xz")
    assert_same_key(-(2**63), bytes(7) + b"\x80")
    assert_same_key(2**128 - 1, b"\xff" * 16)
    assert_same_key(-(2**127), bytes(15) + b"\x80")
    assert_same_key(np.uint8(200), (200).to_bytes(8, "little"))
    assert_same_key(np.int16(-3), (-3).to_bytes(8, "little", signed=True))


def test_a_width_gives_integers_of_that_width() -> None:
    for width in (8, 16, 32, 64):
        for sign in ("u", "i"):
            array = np.array([1, 100, -7 if sign == "i" else 7], f"{sign}{width // 8}")
            raw = [value.tobytes() for value in array.astype(f"<{sign}{width // 8}")]
            for keys in (array, array.tolist()):
                f = koel.CuckooFilter(10, 1e-6)
                assert f.update(keys, width=width) == 3
                assert all(key in f for key in raw)
                assert f.contains_many(keys, width=width).all()


def assert_same_key(key: koel.Key, raw: bytes) -> None:
    f = koel.CuckooFilter(10, 1e-9)
    assert f.add(key) and not f.add(raw) and f.discard(raw) and key not in f
