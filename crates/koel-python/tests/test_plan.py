"""`FilterPlan`: the same bytes however keys are divided, and an error for whatever is wrong."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import koel
import numpy as np
import pyarrow as pa
import pytest

KEYS = np.arange(30_000)


def several(**settings: Any) -> koel.FilterPlan:
    plan = koel.FilterPlan(3_000_000, **settings)
    assert plan.segments == 4
    return plan


def local(plan: koel.FilterPlan, keys: Any) -> bytes:
    return plan.join(plan.build(plan.split(keys)), keys=len(keys)).to_bytes()


@pytest.mark.parametrize("multi", [False, True])
def test_the_bytes_depend_on_the_keys_only(multi: bool, tmp_path: Path) -> None:
    plan = several(multi=multi)
    keys = np.concatenate([KEYS, KEYS[:700], KEYS[:700]])
    expected = local(plan, keys)
    there = pickle.loads(pickle.dumps(plan))
    parts = [part for share in np.array_split(keys[::-1], 7) for part in there.split(share)]
    pieces = [plan.build(p for p in parts if p[0] == n) for n in range(plan.segments)]
    mixed: list[Any] = [pieces[2][0], *pieces[3], pieces[0][0][1], pieces[1][0], pieces[2][0]]
    path = tmp_path / "seen.koel"
    assert plan.save(iter(mixed), path, keys=len(keys)) == len(keys)
    assert path.read_bytes() == expected == plan.join(mixed).to_bytes()
    seen = koel.CuckooFilter.open(path)
    seen.verify()
    assert seen.count(5) == (3 if multi else 1)
    one_by_one = koel.CuckooFilter(3_000_000)
    one_by_one.update(keys, multi=multi)
    assert len(seen) == len(one_by_one) and seen == one_by_one


def test_keys_of_any_type_are_those_of_a_filter() -> None:
    plan = koel.FilterPlan(1000)
    lists: list[Any] = [
        ["a", b"b", 3, ("d", 4)],
        pa.array(["x", None, "y"]),
        np.array([1, 2], np.int32),
    ]
    for keys in lists:
        seen = plan.join(plan.build(plan.split(keys)))
        assert seen.contains_many(keys) is not None and len(seen) > 1
    wide = plan.join(plan.build(plan.split([1, 2], width=8)))
    assert wide.contains_many([1, 2], width=8).all() and 1 not in wide
    with pytest.raises(TypeError, match="a key is"):
        plan.split([1.5])  # type: ignore
    assert plan.split([]) == [] and plan.build([]) == []


def test_pickles_keep_every_setting() -> None:
    settings: list[dict[str, Any]] = [
        {}, {"multi": True}, {"grow": True}, {"prefer": "fast"}, {"seed": 7}, {"secret": b"s" * 16}
    ]
    plans = [koel.FilterPlan(1000, 0.01, **s) for s in settings]
    for number, plan in enumerate(plans):
        copy = pickle.loads(pickle.dumps(plan))
        assert [copy == other for other in plans] == [n == number for n in range(len(plans))]
        assert (copy.multi, copy.capacity, copy.error_rate) == (plan.multi, 1000, 0.01)
    with pytest.raises(ValueError, match="not both"):
        koel.FilterPlan(1000, seed=1, secret=b"s" * 16)


def test_whatever_is_lost_damaged_or_foreign_is_an_error(tmp_path: Path) -> None:
    plan, path = several(), tmp_path / "seen.koel"
    parts = plan.split(KEYS)
    pieces = plan.build(parts)
    damaged = bytearray(pieces[1][1])
    damaged[5000] ^= 1
    part = parts[0][1]
    faults: list[tuple[Any, int | None, str]] = [
        (pieces[:2], None, "segment 2 has no piece"),
        (pieces[:2], len(KEYS), "keys are in the pieces, not 30000"),
        ([pieces[0], damaged], None, "piece 1, counted from 0, is damaged"),
        (several(seed=2).build(several(seed=2).split(KEYS)), None, "piece 0.* another plan"),
        (pieces + plan.build(plan.split(KEYS[1:])), None, "different from an earlier piece"),
        ([part], None, "not a piece: its first bytes"),
        ([b""], None, "piece 0.* damaged or cut short"),
    ]
    for wrong, keys, message in faults:
        with pytest.raises(ValueError, match=message):
            plan.save(wrong, path, keys=keys)
        with pytest.raises(ValueError, match=message):
            plan.join(wrong, keys=keys)
    with pytest.raises(ValueError, match="part 0.* is of segment"):
        plan.build([(1 - parts[0][0], part)])
    with pytest.raises(ValueError, match="there is no segment 4"):
        plan.build([], segments=[4])
    small = koel.FilterPlan(10)
    with pytest.raises(koel.Full, match="segment 0 has no room"):
        small.build(small.split(KEYS))
    with pytest.raises(FileNotFoundError):
        plan.save(pieces, tmp_path / "no" / "seen.koel")
    assert os.listdir(tmp_path) == []


def test_empty_segments_are_named_or_counted() -> None:
    plan = several()
    some = plan.build(plan.split(["ada"]))
    every = plan.build(plan.split(["ada"]), segments=range(plan.segments))
    assert [segment for segment, _ in every] == [0, 1, 2, 3]
    assert plan.join(some, keys=1) == plan.join(every)


def test_errors_and_ctrl_c_come_through_and_leave_no_file(tmp_path: Path) -> None:
    plan = several()
    pieces = plan.build(plan.split(KEYS))

    def failing() -> Iterator[tuple[int, bytes]]:
        yield pieces[0]
        raise KeyError("lost")

    def interrupted() -> Iterator[tuple[int, bytes]]:
        while True:
            yield pieces[0]

    for save in (lambda it: plan.save(it, tmp_path / "x.koel"), plan.join):
        with pytest.raises(KeyError, match="lost"):
            save(failing())
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            save(interrupted())
    assert os.listdir(tmp_path) == []


def test_other_threads_run_while_it_works() -> None:
    plan, ticks, done = several(), [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    keys = np.arange(2_000_000)
    before = [ticks[0]]
    parts = plan.split(keys)
    before.append(ticks[0])
    pieces = plan.build(parts)
    before.append(ticks[0])
    plan.join(pieces)
    done.set()
    thread.join()
    assert all(later > earlier for earlier, later in zip(before, [*before[1:], ticks[0]]))
