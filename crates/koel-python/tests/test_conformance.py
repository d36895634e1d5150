"""The package runs the scenarios of docs/conformance, which every door runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import koel
import numpy as np
import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "conformance"
CANNOT = json.loads((FOLDER / "doors.json").read_text())["python"]["cannot"]
SCENARIOS = [
    (path.stem, scenario)
    for path in sorted(FOLDER.glob("*.json"))
    if path.stem != "doors"
    for scenario in json.loads(path.read_text())["scenarios"]
]
# Fields of a step that no door can lack.
PLAIN = "do filter is at_most error key keys of from to with patch capacity url".split()
NO_KEYS = {"fraction": 1.5, "true": True, "null": None, "surrogate": "\ud800"}
Step = dict[str, Any]


def keys_of(step: Step) -> list[Any]:
    keys = step.get("keys", [step["key"]] if "key" in step else [])
    if isinstance(keys, list):
        return keys
    if "texts" in keys:
        return [keys["texts"].replace("{}", str(i)) for i in range(*keys["range"])]
    return list(range(*keys["integers"]))


def kind(key: Any) -> str:
    if isinstance(key, dict):
        return str(next(iter(key)))
    return "integer" if isinstance(key, int) else "text" if key else "empty"


def needs(scenario: dict[str, Any]) -> Iterator[str]:
    """What a door must be able to do: docs/conformance/README.md."""
    for step in scenario["steps"]:
        yield step["do"]
        for field, value in step.items():
            if field == "error":
                yield f"error {value}"
            elif field in ("counts", "prefer"):
                yield f"{step['do']} {field} {value}"
            elif field not in PLAIN:
                yield f"{step['do']} {field}"
        yield from (f"key {kind(key)}" for key in keys_of(step))
        if step.get("keys") == []:
            yield "no keys"


def key_of(key: Any) -> Any:
    if not isinstance(key, dict):
        return key
    ((kind, value),) = key.items()
    if kind == "tuple":
        return tuple(map(key_of, value))
    if kind == "none":
        return NO_KEYS[value]
    return bytes.fromhex(value) if kind == "hex" else int(value)


def code_of(step: Step, error: Exception) -> str:
    """The type of an error, and of a ValueError the verb, tell its code."""
    if isinstance(error, koel.Full):
        return "full"
    if isinstance(error, TypeError):
        return "key"
    if isinstance(error, OverflowError):
        return "range"
    if "chance explains" in str(error):
        return "members"
    if step["do"] == "patched":
        is_base = "patch is for" in str(error) or "already" in str(error)
        return "base" if is_base else "bytes"
    verbs = {"build": "settings", "open": "bytes"}
    verbs |= dict.fromkeys(("merge", "diff", "common", "patch"), "different")
    return verbs.get(step["do"], "lines")


def edited(data: bytes, step: Step) -> bytes:
    changed = bytearray(data)
    if "flip" in step:
        changed[step["flip"]] ^= 1
    kept = changed[: len(changed) - step.get("cut", 0)]
    return bytes(kept) + bytes.fromhex(step.get("append", ""))


def built(step: Step) -> koel.CuckooFilter:
    names = ["grow", "grow_from", "prefer"]
    options: dict[str, Any] = {name: step[name] for name in names if name in step}
    if "seed" in step:
        options["seed"] = int(step["seed"])
    if "secret" in step:
        options["secret"] = bytes.fromhex(step["secret"])
    return koel.CuckooFilter(step["capacity"], step.get("rate", 0.001), **options)


def changes(found: koel.Comparison) -> list[int]:
    return [
        found.surplus_first,
        found.surplus_second,
        found.corrections_first,
        found.corrections_second,
    ]


def elsewhere(f: koel.CuckooFilter) -> koel.RemoteFilter:
    """The filter, asked as if its bytes were elsewhere."""
    file = f.to_bytes()
    return koel.open_remote(lambda start, end: file[start:end])


def alike(here: Any, there: Any) -> Any:
    assert np.array_equal(here, there)
    return here.tolist() if isinstance(here, np.ndarray) else here


class Package:
    """Filters and patches by their names."""

    def __init__(self, folder: Path) -> None:
        self.filters: dict[str, koel.CuckooFilter] = {}
        self.patches: dict[str, bytes] = {}
        self.path = folder / "filter.koel"

    def run(self, step: Step) -> Any:
        verb, name = step["do"], step.get("filter", "f")
        of = self.filters.get(step.get("of", ""), koel.CuckooFilter(1))
        if verb == "build":
            self.filters[name] = built(step)
        elif verb in ("open", "list"):
            image = bytes.fromhex(step["image"]) if "image" in step else of.to_bytes()
            self.filters[name] = koel.CuckooFilter.from_bytes(edited(image, step))
        elif verb == "copy":
            self.filters[name] = of.copy()
        elif verb == "reopen":
            self.filters[name].save(self.path)
            self.filters[name] = koel.CuckooFilter.open(self.path)
        elif verb == "patch":
            patch = self.filters[step["from"]].patch_to(self.filters[step["to"]])
            self.patches[step["patch"]] = patch
            return patch.hex()
        elif verb == "patched":
            patch = edited(self.patches[step["patch"]], step)
            self.filters[name] = of.patched(patch)
        else:
            return self.asked(step, self.filters[name])
        return None

    def asked(self, step: Step, f: koel.CuckooFilter) -> Any:
        keys = [key_of(key) for key in keys_of(step)]
        other = self.filters.get(step.get("with", ""), f)
        copies = {"multi": step.get("copies", False)}
        verbs: dict[str, Any] = {
            "add": lambda: f.add(keys[0], **copies),
            "add_many": lambda: f.update(keys, **copies),
            "remove": lambda: f.discard(keys[0]),
            "remove_many": lambda: f.remove_many(keys).tolist(),
            "contains": lambda: alike(keys[0] in f, keys[0] in elsewhere(f)),
            "contains_many": lambda: alike(f.contains_many(keys), elsewhere(f).contains_many(keys)),
            "contains_url": lambda: alike(
                f.contains_url(step["url"]), elsewhere(f).contains_url(step["url"])
            ),
            "count": lambda: f.count(keys[0]),
            "count_many": lambda: f.count_many(keys).tolist(),
            "refute": lambda: f.refute(keys[0]),
            "refute_many": lambda: f.refute_many(keys, force=step.get("force", False)),
            "clear": f.clear,
            "merge": lambda: f.merge(other, counts=step["counts"]),
            "same": lambda: f == other,
            "bytes": lambda: f.to_bytes() == other.to_bytes(),
            "common": lambda: round(f.diff(other).common.value),
            "diff": lambda: changes(f.diff(other)),
            "header": lambda: f.to_bytes()[:192].hex(),
            "len": lambda: len(f),
            "capacity": lambda: f.capacity,
            "rate": lambda: f.error_rate,
            "corrections": lambda: f.corrections,
            "growable": lambda: f.growable,
            "line_options": lambda: f.line_options,
        }
        return verbs[step["do"]]()


@pytest.mark.parametrize("theme, scenario", SCENARIOS, ids=[it["name"] for _, it in SCENARIOS])
def test_the_package_does_what_the_scenario_says(
    theme: str, scenario: dict[str, Any], tmp_path: Path
) -> None:
    if not CANNOT.keys().isdisjoint(needs(scenario)):
        return
    package = Package(tmp_path)
    for number, step in enumerate(scenario["steps"], 1):
        place = f'{theme}.json, "{scenario["name"]}", step {number}: {step}'
        answer, code = None, None
        try:
            answer = package.run(step)
        except (koel.Full, TypeError, OverflowError, ValueError) as error:
            code = code_of(step, error)
        assert code == step.get("error"), place
        if isinstance(answer, list) and not isinstance(step.get("is"), list):
            answer = sum(answer)
        assert answer == step.get("is", answer), place
        assert "at_most" not in step or answer <= step["at_most"], place


def test_every_lack_is_one_of_a_scenario() -> None:
    needed = {need for _, scenario in SCENARIOS for need in needs(scenario)}
    assert CANNOT.keys() <= needed
    ran = sum(CANNOT.keys().isdisjoint(needs(scenario)) for _, scenario in SCENARIOS)
    print(f"python: ran {ran} scenarios, skipped {len(SCENARIOS) - ran}")
