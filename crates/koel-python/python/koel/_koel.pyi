# Types of the compiled part, with the first words of its documentation. `help(koel.CuckooFilter)` has all.
import datetime
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, overload, type_check_only

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, Self

from ._key import Key

_Path: TypeAlias = str | os.PathLike[str]
_Width: TypeAlias = Literal[8, 16, 32, 64]
_Bools: TypeAlias = npt.NDArray[np.bool_]
_Counts: TypeAlias = npt.NDArray[np.uint64]

@type_check_only
class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any: ...

@type_check_only
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...

_Arrow: TypeAlias = _ArrowArray | _ArrowStream
_Keys: TypeAlias = Iterable[Key] | npt.NDArray[Any]
_Time: TypeAlias = (
    float | np.integer[Any] | np.floating[Any] | datetime.datetime | datetime.timedelta
)
_Numbers: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]] | _Arrow

class Full(Exception):
    """A filter that does not grow has no room for the key. Nothing was changed by that key."""

    # Of a batch: how many keys are done, and their answers. Other exceptions have them, too.
    done: int
    answers: _Bools | _Counts | int | None

@type_check_only
class _Face:
    @classmethod
    def open(cls, path: _Path, *, mmap: bool = False) -> Self:
        """Opens a file that any Koel program saved."""
    @classmethod
    def from_bytes(cls, data: Buffer) -> Self:
        """Reads the bytes of a file, and checks all of them."""
    @property
    def capacity(self) -> int:
        """The number of distinct keys it was built for. They always fit."""
    @property
    def error_rate(self) -> float:
        """The false-positive rate it was built for, 0 to 1."""
    @property
    def seed(self) -> int | None:
        """The seed of the hash function. None if there is a secret instead."""
    @property
    def application(self) -> bytes:
        """Eight bytes of the program that built it. The command `koel` stores how it made keys of
        lines (docs/FORMAT.md, Lines): `bytes(8)` if a key is the line itself."""
    @property
    def line_options(self) -> str | None:
        """The options of `koel build` without which a text is another key."""
    @property
    def false_positive_rate(self) -> float:
        """The probability that an absent key is reported as present now, 0 to 1."""
    @property
    def load_factor(self) -> float:
        """The share of slots in use, 0 to 1."""
    @property
    def nbytes(self) -> int:
        """Bytes of memory, and of the file."""
    @property
    def growable(self) -> bool:
        """Whether it grows when it is full, instead of raising `koel.Full`."""
    @property
    def readonly(self) -> bool:
        """Whether it reads a memory-mapped file, and so cannot be changed."""
    def __contains__(self, key: Key) -> bool: ...
    def contains_url(self, url: str) -> bool:
        """Whether the host of a URL, or one of its parent domains, is in."""
    @overload
    def contains_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """Whether each of many keys is in."""
    @overload
    def contains_many(self, keys: _Keys, *, width: _Width = 64) -> _Bools: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def clear(self) -> None:
        """Removes everything. The size stays."""
    def shrink_to_fit(self) -> None:
        """Moves the entries to the smallest table that holds them, but to none smaller than the one
        it was built with. Needs the memory of both."""
    def copy(self) -> Self:
        """A copy in memory of its own, which can be changed."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def _repr_html_(self) -> str: ...
    def save(self, path: _Path) -> None:
        """Saves to a file, in the format that every Koel program reads."""
    def to_bytes(self) -> bytes:
        """The bytes of its file."""
    def verify(self) -> None:
        """Checks every byte of a file opened with `mmap=True`."""

@type_check_only
class _CountedFace(_Face):
    def count(self, key: Key) -> int:
        """How often a key was added and not removed. Never too low; too high with the probability
        `false_positive_rate`, by the count of another key."""
    @overload
    def count_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """The count of each of many keys: an array of uint64 in the shape of the keys."""
    @overload
    def count_many(self, keys: _Keys, *, width: _Width = 64) -> _Counts: ...
    def distinct(self) -> float:
        """An estimate of the number of distinct keys."""
    def discard(self, key: Key) -> bool:
        """Removes one copy of a key. Returns False if it is not in."""
    def remove(self, key: Key) -> None:
        """Removes one copy of a key. Raises KeyError if it is not in."""
    @overload
    def remove_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """Removes one copy of each of many keys. Returns which were in, as an array of bool in the
        shape of the keys."""
    @overload
    def remove_many(self, keys: _Keys, *, width: _Width = 64) -> _Bools: ...
    def merge(self, other: Self, *, counts: Literal["max", "sum"] = "max") -> None:
        """Adds the keys of another filter that was built alike."""
    def __or__(self, other: Self, /) -> Self: ...
    def __ior__(self, other: Self, /) -> Self: ...

class CuckooFilter(_CountedFace):
    """A set of keys in a few bits per key, from which keys can be removed."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.001,
        *,
        grow: bool = False,
        grow_from: int | None = None,
        prefer: Literal["small", "fast"] = "small",
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    def add(self, key: Key, *, multi: bool = False) -> bool:
        """Adds a key. Returns False, and changes nothing, if the filter reports it as present."""
    @overload
    def add_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """Adds many keys, as `add` does for each in order. Returns which were added, as an array of
        bool in the shape of the keys. A key that comes twice is new the first time only."""
    @overload
    def add_many(self, keys: _Keys, *, width: _Width = 64) -> _Bools: ...
    def update(
        self, *keys: _Keys | _Arrow, multi: bool = False, width: _Width = 64
    ) -> int:
        """Adds many keys, those of one iterable or of several, as `add` does for each in order.
        Returns how many were added."""
    @property
    def corrections(self) -> int:
        """The number of corrections that `refute` made and no `add` took back."""
    def refute(self, key: Key) -> bool:
        """Tells the filter that a key was not added. If the filter reports it, the key gets a
        correction and is not reported any more. Returns whether it got one."""
    def refute_many(
        self, keys: _Keys | _Arrow, *, width: _Width = 64, force: bool = False
    ) -> int:
        """Refutes many keys, all or none. Returns how many corrections were made."""
    def reserve(self, additional: int) -> None:
        """Makes room for so many more keys now, if the filter grows."""
    def similarity(self, other: CuckooFilter) -> Estimate:
        """How many keys two filters have in common: the Jaccard index with its standard error, 0 to
        1."""
    def diff(self, other: CuckooFilter) -> Comparison:
        """How many keys are in both filters, in one of them, and in this or the other one only."""
    def patch_to(self, new: CuckooFilter) -> bytes:
        """What changed from this filter to `new`, some 2 bytes a change, for `patched`."""
    def patched(self, patch: Buffer) -> CuckooFilter:
        """The filter that a patch of `patch_to` makes of this one, which stays as it is."""

class CountingFilter(_CountedFace):
    """Counts keys, for streams in which some keys come very often."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.001,
        *,
        count_bits: int = 8,
        grow: bool = False,
        grow_from: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    def add(self, key: Key, times: int = 1) -> int:
        """Raises the count of a key by `times`, and returns it. 0 changes nothing."""
    def update(self, *keys: _Keys | _Arrow, width: _Width = 64) -> int:
        """Counts each of many keys, those of one iterable or of several. Returns how many there
        were. A mapping, such as a `Counter`, raises TypeError: use `add(key, times)` for each of
        its items."""

class Maplet(_Face):
    """Maps keys to small numbers, in little more space than the numbers take."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.001,
        *,
        value_bits: int,
        grow: bool = False,
        grow_from: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @property
    def value_bits(self) -> int:
        """Bits of a value."""
    def add(self, key: Key, value: int) -> None:
        """Adds a pair. A pair that is in already gets another entry."""
    def get(self, key: Key) -> list[int]:
        """The values of a key, and seldom one of another key. An empty list if there are none."""
    def __getitem__(self, key: Key) -> list[int]: ...
    def get_many(
        self, keys: _Keys | _Arrow, *, width: _Width = 64
    ) -> tuple[_Counts, _Counts]:
        """The values of many keys, as two arrays `(offsets, values)`: those of key `i` are
        `values[offsets[i]:offsets[i + 1]]`."""
    def replace(self, key: Key, old: int, new: int) -> bool:
        """Changes the value of one pair. Returns False if there is no such pair."""
    def discard(self, key: Key, value: int) -> bool:
        """Removes one pair. Returns False if it is not in. Raises ValueError for a value of too many
        bits."""
    def remove(self, key: Key, value: int) -> None:
        """Removes one pair. Raises KeyError if it is not in."""
    @overload
    def update(
        self, keys: Mapping[Any, int] | Iterable[tuple[Key, int]], *, width: _Width = 64
    ) -> None:
        """Adds many pairs: of a mapping, of an iterable of pairs, or of keys and as many values."""
    @overload
    def update(
        self, keys: _Keys | _Arrow, values: _Numbers, *, width: _Width = 64
    ) -> None: ...
    def remove_many(
        self, keys: _Keys | _Arrow, values: _Numbers, *, width: _Width = 64
    ) -> _Bools:
        """Removes one pair of each of many keys and the value at the same place. Returns which were
        in, as a numpy array of bool."""

class ExpiringFilter(_Face):
    """Answers "was this key seen within the last ten minutes?"."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.001,
        *,
        window: _Time,
        steps: int = 24,
        when_full: Literal["fail", "evict"] = "fail",
        grow: bool = False,
        grow_from: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    def add(
        self,
        key: Key,
        *,
        now: _Time,
        refresh: bool = False,
        ttl: _Time | None = None,
    ) -> bool:
        """Adds a key unless it is in. Returns whether it was added: True for a key that did not come
        within the window."""
    @overload
    def add_many(
        self, keys: _Arrow, *, now: _Time, refresh: bool = False, width: _Width = 64
    ) -> Any:
        """Adds many keys, as `add` does for each in order. Returns which were added, as an array of
        bool in the shape of the keys. A key that comes twice is new the first time only."""
    @overload
    def add_many(
        self, keys: _Keys, *, now: _Time, refresh: bool = False, width: _Width = 64
    ) -> _Bools: ...
    def update(
        self,
        *keys: _Keys | _Arrow,
        now: _Time,
        refresh: bool = False,
        width: _Width = 64,
    ) -> int:
        """Adds many keys, those of one iterable or of several, as `add_many` does. Returns how many
        were added."""
    def contains_at(self, key: Key, now: _Time) -> bool:
        """Whether a key is in at a later time, without a change of the filter. An earlier time is
        the present step, for which `key in seen` asks: what expired is not known any more."""
    def age(self, key: Key) -> int | None:
        """How many steps ago a key came, or was last refreshed. None if it is not in."""
    def age_many(
        self, keys: _Keys | _Arrow, *, width: _Width = 64
    ) -> npt.NDArray[np.int64]:
        """The age of each of many keys, as a numpy array of int64 in the shape of the keys: -1 for a
        key that is not in."""
    def discard(self, key: Key) -> bool:
        """Removes a key. Returns False if it is not in."""
    def remove(self, key: Key) -> None:
        """Removes a key. Raises KeyError if it is not in."""
    @overload
    def remove_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """Removes each of many keys. Returns which were in, as an array of bool in the shape of the
        keys."""
    @overload
    def remove_many(self, keys: _Keys, *, width: _Width = 64) -> _Bools: ...
    def advance(self, now: _Time, *, most: _Time | None = None) -> int:
        """Sets the time, unless it is before the present step. Returns how many keys expired."""
    def rebase(self, now: _Time) -> None:
        """Says that the present step began at `now`, which may be earlier than before: for a clock
        that was set back. No key expires or gets older by that."""
    @property
    def window(self) -> int:
        """How long a key is in at least, in the unit of `now`: a whole number of steps."""
    @property
    def steps(self) -> int:
        """The steps of the window."""
    @property
    def step(self) -> int:
        """The length of a step, in the unit of `now`."""
    @property
    def step_began(self) -> int:
        """The time at which the present step began."""
    @property
    def when_full(self) -> Literal["fail", "evict"]:
        """What `add` does with more keys than fit: 'fail' or 'evict'."""
    @property
    def evicted(self) -> int:
        """How many keys were forgotten early, because there was no room for more."""
    @property
    def youngest_evicted(self) -> int | None:
        """The age in steps of the youngest key that was forgotten early; None if none was. Keys
        younger than that were all kept."""

class FilterPlan:
    """A filter that many processes build in pieces, such as the tasks of Spark or Dask."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.001,
        *,
        multi: bool = False,
        grow: bool = False,
        prefer: Literal["small", "fast"] = "small",
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Self: ...
    @property
    def capacity(self) -> int:
        """Distinct keys that will fit."""
    @property
    def error_rate(self) -> float:
        """The false-positive rate that was asked for."""
    @property
    def multi(self) -> bool:
        """Whether a key is added each time that it comes."""
    @property
    def segments(self) -> int:
        """The number of segments: how many processes can build at once."""
    def split(self, keys: _Keys | _Arrow, *, width: _Width = 64) -> list[tuple[int, bytes]]:
        """Splits keys by segment: a list of `(segment, part)`, where a part is bytes."""
    def build(
        self, parts: Iterable[tuple[int, Buffer]], *, segments: Iterable[int] | None = None
    ) -> list[tuple[int, bytes]]:
        """Builds segments from their parts: a list of `(segment, piece)`, where a piece is bytes."""
    def save(
        self,
        pieces: Iterable[Buffer | tuple[int, Buffer]],
        path: _Path,
        *,
        keys: int | None = None,
    ) -> int:
        """Saves the filter of all pieces as a file, with the memory of one piece. Returns the number
        of keys that went into the parts, with those that came twice."""
    def join(
        self, pieces: Iterable[Buffer | tuple[int, Buffer]], *, keys: int | None = None
    ) -> CuckooFilter:
        """The filter of all pieces, in memory. Takes `pieces` and `keys` as `save` does."""
    def __eq__(self, other: object, /) -> bool: ...

@type_check_only
class _Reader(Protocol):
    def read_range(self, start: int, end: int, /) -> Buffer: ...

def open_remote(
    reader: _Reader | Callable[[int, int], Buffer], *, page: int = 1, gap: int = 16384
) -> RemoteFilter:
    """Opens a filter where it lies, by a function that reads the bytes from `start` to before `end`,
    or an object with such a method `read_range`."""

class RemoteFilter:
    """A filter that is asked where it lies: see `koel.open_remote`."""

    @overload
    def contains_many(self, keys: _Arrow, *, width: _Width = 64) -> Any:
        """Whether each of many keys is in, as `CuckooFilter.contains_many` says it. Each 262,144 keys
        are one batch, whose near ranges are read as one."""
    @overload
    def contains_many(self, keys: _Keys, *, width: _Width = 64) -> _Bools: ...
    def contains_url(self, url: str) -> bool:
        """Whether the host of a URL, or one of its parent domains, is in. Where keys are not hosts,
        the text is also looked up as it is. One batch."""
    @property
    def line_options(self) -> str | None:
        """The options of `koel build` without which a text is another key: see
        `CuckooFilter.line_options`."""
    @property
    def capacity(self) -> int:
        """The number of distinct keys it was built for."""
    @property
    def error_rate(self) -> float:
        """The false-positive rate it was built for."""
    @property
    def false_positive_rate(self) -> float:
        """The false-positive rate as it is now."""
    @property
    def corrections(self) -> int:
        """The number of corrections."""
    @property
    def nbytes(self) -> int:
        """The bytes of the whole file."""
    @property
    def requests(self) -> int:
        """The ranges that were read so far."""
    @property
    def bytes_read(self) -> int:
        """The bytes that were read so far."""
    def __contains__(self, key: Key, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

class Estimate:
    """An estimate with its standard error."""

    def __new__(cls, value: float, standard_error: float) -> Self: ...
    @property
    def value(self) -> float:
        """The most likely value."""
    @property
    def standard_error(self) -> float:
        """The standard error of the value."""
    def __float__(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

class Comparison:
    """How two filters relate: `first.diff(second)`."""

    @property
    def common(self) -> Estimate:
        """The number of distinct keys in both filters."""
    @property
    def union(self) -> Estimate:
        """The number of distinct keys in either filter."""
    @property
    def only_first(self) -> Estimate:
        """The number of distinct keys in the first filter and not in the second."""
    @property
    def only_second(self) -> Estimate:
        """The number of distinct keys in the second filter and not in the first."""
    @property
    def jaccard(self) -> Estimate:
        """The Jaccard index, 0 to 1: common keys divided by keys in either filter."""
    @property
    def surplus_first(self) -> int:
        """The number of keys, with copies, that the first filter has and the second lacks. Exact
        unless different keys share an entry."""
    @property
    def surplus_second(self) -> int:
        """The number of keys, with copies, that the second filter has and the first lacks. Exact
        unless different keys share an entry."""
    @property
    def corrections_first(self) -> int:
        """The number of corrections that the first filter has and the second lacks."""
    @property
    def corrections_second(self) -> int:
        """The number of corrections that the second filter has and the first lacks."""

class ArrowArray:
    """The answers of a batch as an Arrow array, for any library that reads Arrow's C data interface."""

    def __len__(self) -> int: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
