"""Filters have the bytes of docs/vectors.json, which the tests of Rust and JavaScript build too."""

import json
from pathlib import Path
from typing import Any

import koel
import pytest

VECTORS = Path(__file__).parents[3] / "docs" / "vectors.json"
CASES = json.loads(VECTORS.read_text())["cases"]
PATCHES = json.loads(VECTORS.read_text())["patches"]


def keys_of(step: dict[str, Any]) -> list[str | int | bytes]:
    if "text" in step:
        return [step["text"]]
    if "integer" in step:
        return [int(step["integer"])]
    if "bytes" in step:
        return [bytes.fromhex(step["bytes"])]
    return [f"key {i}" for i in range(step["keys"])]


def built(case: dict[str, Any], steps: list[dict[str, Any]]) -> koel.CuckooFilter:
    f = koel.CuckooFilter(
        case["capacity"],
        case["error_rate"],
        grow=case["growable"],
        prefer=case["prefer"],
        seed=int(case["seed"]),
    )
    for step in steps:
        for key in keys_of(step):
            if step["do"] == "add":
                f.add(key, multi=True)
            else:
                f.remove(key)
    return f


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_filter_has_the_bytes_of_the_vectors(case: dict[str, Any]) -> None:
    image = built(case, case["steps"]).to_bytes()
    assert (len(image), image[:192].hex()) == (case["length"], case["header"])
    assert koel.CuckooFilter.from_bytes(image).to_bytes() == image


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case["name"])
def test_a_patch_has_the_bytes_of_the_vectors(case: dict[str, Any]) -> None:
    old, new = built(case, case["steps"]), built(case, case["new_steps"])
    patch = old.patch_to(new)
    assert patch.hex() == case["patch"]
    image = old.patched(memoryview(patch)).to_bytes()
    assert (len(image), image[:192].hex()) == (case["length"], case["header"])
