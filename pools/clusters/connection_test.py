"""The test of a connection: who answers, what it serves, which rights are missing. It changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pools.clusters import connections
from pools.clusters.client.api_client import Gateway
from pools.clusters.reconcile import served_kinds, sync
from pools.core import errors
from pools.core.block_fields import time as shown_time
from pools.core.cilium import conversion
from pools.core.kubernetes import permissions
from pools.core.kubernetes.permissions import Right
from pools.core.kubernetes.resources import CILIUM_POD_IP_POOL, Resource
from pools.models import Connection
from pools.platform import database
from pools.platform.outbound import credentials, faults
from pools.platform.outbound.access import Access


@dataclass(frozen=True)
class Kind:
    """A kind that is read; `shape` is that of pools, `note` says what is wrong with it."""

    kind: str
    served: tuple[str, ...]  # apiVersions, the one that is read first
    shape: str = ""
    note: str = ""
    is_needed: bool = False  # by what is switched on


@dataclass(frozen=True)
class Ending:
    """When a token or a certificate ends; `days` are left, below 0 when it is over."""

    what: str
    at: datetime
    days: int


@dataclass
class Examination:
    """What was found; `code` and `message` are the fault that ended it, "" without one."""

    server: str
    code: str = ""
    message: str = ""
    version: str = ""
    identity: str = ""
    doubts: list[str] = field(default_factory=list)  # what is odd, as sentences
    kinds: list[Kind] = field(default_factory=list)
    rights: list[tuple[Right, bool]] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    @property
    def missing(self) -> list[Right]:
        """The rights that are needed and not there."""
        return [right for right, granted in self.rights if not (granted or right.optional)]

    @property
    def succeeded(self) -> bool:
        """Whether passes would succeed."""
        return not (self.code or self.missing or any(map(_is_missing, self.kinds)))

    def as_json(self) -> dict[str, Any]:
        """What REST answers and `cluster test --json` prints."""
        return {
            "succeeded": self.succeeded,
            "server": self.server,
            "code": self.code,
            "message": self.message,
            "version": self.version,
            "identity": self.identity,
            "doubts": self.doubts,
            "kinds": [
                {"kind": one.kind, "served": list(one.served), "shape": one.shape, "note": one.note}
                for one in self.kinds
            ],
            "rights": [
                {"right": str(right), "needed_for": right.needed_for, "granted": granted}
                for right, granted in self.rights
            ],
            "endings": [
                {"what": one.what, "at": shown_time(one.at), "days": one.days}
                for one in self.endings
            ],
        }


def _is_missing(kind: Kind) -> bool:
    return kind.is_needed and not kind.served


def of_connection(connection: Connection, wanted: Iterable[Resource]) -> Examination:
    """Examine a connection for its own duties; a fault is part of the answer, never raised.

    `wanted` are the versions of all kinds that are read, each kind's preferred one first.
    """
    found = Examination(connection.server)
    with _told(found):
        access = sync.access(connection)
        _examine(found, access, list(wanted), connection.duties, connection)
    return found


def of_source(
    source: connections.Source, terms: connections.Terms, wanted: Iterable[Resource]
) -> Examination:
    """Examine what is about to be connected."""
    found = Examination(source.access.server)
    with _told(found):
        _examine(found, source.access, list(wanted), terms.duties, None)
    return found


@contextlib.contextmanager
def _told(found: Examination) -> Iterator[None]:
    try:
        yield
    except errors.IpamError as error:
        found.code, found.message = error.code, error.message


def _examine(
    found: Examination,
    access: Access,
    wanted: Sequence[Resource],
    duties: Sequence[str],
    known: Connection | None,
) -> None:
    now = database.now()
    for what, at in credentials.ends(access).items():
        found.endings.append(Ending(what, at, (at - now).days))
    if not access.ca:
        found.doubts.append("No certificate authority is given: the system's own are trusted.")
    with connections.gateway(access) as reached:
        found.version = reached.version()
        found.identity = reached.identity()
        _check_identity(found, known)
        served = reached.served(wanted)
        for kind in dict.fromkeys(resource.kind for resource in wanted):
            versions = [one for one in wanted if one.kind == kind and one in served]
            needing = permissions.duties_writing(kind, duties)
            found.kinds.append(_kind(reached, kind, versions, needing))
        # Rights are asked for by the version that will be read.
        reads = [one for one in wanted if one in served]
        for right in permissions.needed(reads, duties):
            granted = reached.may(right.verb, right.resource, subresource=right.subresource)
            found.rights.append((right, granted))
        found.doubts += _doubts(found)


def _doubts(found: Examination) -> list[str]:
    lost: dict[str, list[str]] = {}
    for right, granted in found.rights:
        if right.optional and not granted:
            lost.setdefault(right.needed_for, []).append(str(right))
    return [f"No {what}: these need {', '.join(rights)}." for what, rights in lost.items()]


def _check_identity(found: Examination, known: Connection | None) -> None:
    if known is not None and known.identity and known.identity != found.identity:
        raise sync.IdentityChanged(
            f"The cluster behind {found.server} is another one than was registered."
        )
    if other := connections.registered(found.identity, known):
        raise errors.SameCluster(f"This cluster is registered already, as {other.cluster}.")


def _kind(
    reached: Gateway, kind: str, versions: Sequence[Resource], needing: Sequence[str]
) -> Kind:
    served = tuple(one.api_version for one in versions)
    if not versions and needing:
        return Kind(kind, (), note=served_kinds.needed(kind, needing), is_needed=True)
    if not versions:
        return Kind(kind, (), note="not served: nothing of it is shown")
    if kind != CILIUM_POD_IP_POOL.kind:
        return Kind(kind, served)
    try:
        schema = reached.schema(versions[0])
        shape = conversion.shape_of(schema).value if schema else ""
    except errors.InvalidInput as error:
        return Kind(kind, served, note=error.message)
    except faults.ClusterFault as error:
        return Kind(kind, served, note=f"its schema cannot be read: {error.message}")
    return Kind(kind, served, shape, note="" if shape else "its schema is not shown")
