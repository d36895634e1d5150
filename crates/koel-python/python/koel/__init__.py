"""Cuckoo filters: sets of keys in a few bits per key, that count, forget and grow.

    >>> import koel
    >>> seen = koel.CuckooFilter(1_000_000, error_rate=0.001)
    >>> seen.update(["ada", "mary"])
    2
    >>> "ada" in seen, "grace" in seen
    (True, False)

* `CuckooFilter`: have I seen this key?
* `CountingFilter`: how often has this key come?
* `ExpiringFilter`: have I seen this key within the last ten minutes?
* `Maplet`: a small number for each key.
* `FilterPlan`: a `CuckooFilter` that Spark, Dask or other processes build.
* `open_remote`: ask a filter on a web server or in an object store without fetching it.

A filter is the same file in Python, in Rust and for the command `koel`.
"""

from importlib.metadata import version as _version

from ._key import Key
from ._koel import (
    ArrowArray,
    Comparison,
    CountingFilter,
    CuckooFilter,
    Estimate,
    ExpiringFilter,
    FilterPlan,
    Full,
    Maplet,
    RemoteFilter,
    open_remote,
)

__version__ = _version("koel-filter")
__all__ = [
    "ArrowArray",
    "Comparison",
    "CountingFilter",
    "CuckooFilter",
    "Estimate",
    "ExpiringFilter",
    "FilterPlan",
    "Full",
    "Key",
    "Maplet",
    "RemoteFilter",
    "open_remote",
]
