"""The name that MTV gives to a VM in the cluster.

The rules are those of Forklift's util.ChangeVmName (pkg/controller/plan/util): the length of a DNS
label, lower case, characters that DNS-1123 forbids removed from each part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LENGTH = 63
_TO_DASH = str.maketrans(dict.fromkeys("_+* /\\", "-"))
_FORBIDDEN = re.compile("[^a-z0-9-]")
_DASHES = re.compile("-+")


def sanitize(name: str) -> str:
    """Return the name in the cluster, or "" if no character is left.

    In that case Forklift generates `vm-` and four random characters.
    """
    parts = (_part(part) for part in name.lower().strip(".-").split("."))
    joined = ".".join(part for part in parts if part)
    return joined[:MAX_LENGTH].strip(".-")


def _part(text: str) -> str:
    text = _FORBIDDEN.sub("", text.translate(_TO_DASH))
    return _DASHES.sub("-", text).strip("-")[:MAX_LENGTH].strip("-")


def collisions(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names in the cluster that several source names would get, each with these, sorted."""
    sources_by_name: dict[str, set[str]] = {}
    for name in names:
        sources_by_name.setdefault(sanitize(name), set()).add(name)
    return {
        target: sorted(sources)
        for target, sources in sources_by_name.items()
        if target and len(sources) > 1
    }
