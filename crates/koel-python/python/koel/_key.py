"""The type of a key, for annotations."""

from typing import Any, SupportsIndex, TypeAlias

Key: TypeAlias = str | bytes | bytearray | memoryview | SupportsIndex | tuple[Any, ...]
"""str, bytes, int (also those of numpy), or a tuple of keys. Not bool."""
