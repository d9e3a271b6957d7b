"""The name that a VM has in the cluster after MTV moved it.

The rules are those of Forklift's util.ChangeVmName (pkg/controller/plan/util): one label's length,
lower case, what DNS-1123 forbids taken out part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 63
_TO_DASH = str.maketrans(dict.fromkeys("_+* /\\", "-"))
_FORBIDDEN = re.compile("[^a-z0-9-]")
_DASHES = re.compile("-+")


def sanitised(name: str) -> str:
    """The name in the cluster; "" when nothing is left, for then Forklift makes up `vm-` and four
    random characters."""
    parts = (_part(part) for part in name.lower().strip(".-").split("."))
    joined = ".".join(part for part in parts if part)
    return joined[:LONGEST].strip(".-")


def _part(text: str) -> str:
    text = _FORBIDDEN.sub("", text.translate(_TO_DASH))
    return _DASHES.sub("-", text).strip("-")[:LONGEST].strip("-")


def collisions(names: Iterable[str]) -> dict[str, list[str]]:
    """Names in the cluster that several different source names would get, with these, sorted."""
    sources_by_name: dict[str, set[str]] = {}
    for name in names:
        sources_by_name.setdefault(sanitised(name), set()).add(name)
    return {
        target: sorted(sources)
        for target, sources in sources_by_name.items()
        if target and len(sources) > 1
    }
