"""Filters have the bytes of docs/vectors.json, which the tests of Rust and JavaScript build too."""

import json
from pathlib import Path
from typing import Any

import koel
import pytest

VECTORS = Path(__file__).parents[3] / "docs" / "vectors.json"
CASES = json.loads(VECTORS.read_text())["cases"]


def keys_of(step: dict[str, Any]) -> list[str | int | bytes]:
    if "text" in step:
        return [step["text"]]
    if "integer" in step:
        return [int(step["integer"])]
    if "bytes" in step:
        return [bytes.fromhex(step["bytes"])]
    return [f"key {i}" for i in range(step["keys"])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_filter_has_the_bytes_of_the_vectors(case: dict[str, Any]) -> None:
    f = koel.CuckooFilter(
        case["capacity"],
        case["error_rate"],
        grow=case["growable"],
        prefer=case["prefer"],
        seed=int(case["seed"]),
    )
    for step in case["steps"]:
        for key in keys_of(step):
            if step["do"] == "add":
                f.add(key, multi=True)
            else:
                f.remove(key)
    image = f.to_bytes()
    assert (len(image), image[:192].hex()) == (case["length"], case["header"])
    assert koel.CuckooFilter.from_bytes(image).to_bytes() == image
