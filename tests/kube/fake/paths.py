"""Which resource a path names."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/(?!status$|finalize$)))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)


@dataclass(frozen=True)
class Target:
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str

    @property
    def resource(self) -> str:
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def parse(path: str) -> Target | None:
    """None for a path of no resource: discovery, the version, health."""
    result = _PATH.fullmatch(path.rstrip("/"))
    if result is None:
        return None
    return Target(**{name: value or "" for name, value in result.groupdict().items()})
