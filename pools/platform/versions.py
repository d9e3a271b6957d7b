"""What keeps a change of a row from overwriting another one that was made since the row was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pools.core import errors

# What a change is based on: the number that REST has in its ETag, or the check of a form, which is called
# with the locked row and raises VersionMismatch. None: the row may have any version.
Version = int | Callable[[Any], None] | None


def require(row: Any, version: Version) -> None:
    """Raise VersionMismatch if a row changed since its version was read; the row is locked by the caller."""
    if callable(version):
        version(row)
    elif version is not None and row.version != version:
        raise errors.VersionMismatch
