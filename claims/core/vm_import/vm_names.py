"""The name that MTV gives to a VM in the cluster.

The rules are those of Forklift's util.ChangeVmName (pkg/controller/plan/util): the length of a DNS
label, lower case, characters that DNS-1123 forbids removed from each part.
"""

from __future__ import annotations

import re

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
