"""The test of a connection: who answers, what it serves, which rights are missing. It changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pools.clusters import connections
from pools.clusters.client.api_client import ClusterClient
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
class KindResult:
    """A kind that is read; `shape` is that of pools, `note` says what is wrong with it."""

    kind: str
    served: tuple[str, ...]  # apiVersions, the one that is read first
    shape: str = ""
    note: str = ""
    is_needed: bool = False  # by what is switched on


@dataclass(frozen=True)
class CredentialExpiry:
    """When a token or a certificate ends; `days` are left, below 0 when it is over."""

    what: str
    moment: datetime
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
    kinds: list[KindResult] = field(default_factory=list)
    rights: list[tuple[Right, bool]] = field(default_factory=list)
    endings: list[CredentialExpiry] = field(default_factory=list)

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
                {
                    "kind": kind.kind,
                    "served": list(kind.served),
                    "shape": kind.shape,
                    "note": kind.note,
                }
                for kind in self.kinds
            ],
            "rights": [
                {"right": str(right), "needed_for": right.needed_for, "granted": granted}
                for right, granted in self.rights
            ],
            "endings": [
                {"what": expiry.what, "at": shown_time(expiry.moment), "days": expiry.days}
                for expiry in self.endings
            ],
        }


def _is_missing(kind: KindResult) -> bool:
    return kind.is_needed and not kind.served


def of_connection(connection: Connection, resources: Iterable[Resource]) -> Examination:
    """Examine a connection for its own managed resources; a fault is part of the answer, never raised.

    `wanted` are the versions of all kinds that are read, each kind's preferred one first.
    """
    examination = Examination(connection.server)
    with _recording_fault(examination):
        access = sync.access(connection)
        _examine(examination, access, list(resources), connection.managed_resources, connection)
    return examination


def of_source(
    source: connections.ConnectionSource, terms: connections.Terms, resources: Iterable[Resource]
) -> Examination:
    """Examine what is about to be connected."""
    examination = Examination(source.access.server)
    with _recording_fault(examination):
        _examine(examination, source.access, list(resources), terms.managed_resources, None)
    return examination


@contextlib.contextmanager
def _recording_fault(examination: Examination) -> Iterator[None]:
    try:
        yield
    except errors.IpamError as error:
        examination.code, examination.message = error.code, error.message


def _examine(
    examination: Examination,
    access: Access,
    resources: Sequence[Resource],
    managed_resources: Sequence[str],
    connection: Connection | None,
) -> None:
    now = database.now()
    for what, moment in credentials.expiry_times(access).items():
        examination.endings.append(CredentialExpiry(what, moment, (moment - now).days))
    if not access.ca:
        examination.doubts.append(
            "No certificate authority is given: the system's own are trusted."
        )
    with connections.client_for(access) as client:
        examination.version = client.version()
        examination.identity = client.identity()
        _check_identity(examination, connection)
        served = client.served(resources)
        for kind in dict.fromkeys(resource.kind for resource in resources):
            versions = [
                resource for resource in resources if resource.kind == kind and resource in served
            ]
            needing = permissions.resources_writing(kind, managed_resources)
            examination.kinds.append(_kind(client, kind, versions, needing))
        # Rights are asked for by the version that will be read.
        reads = [resource for resource in resources if resource in served]
        for right in permissions.needed(reads, managed_resources):
            granted = client.may(right.verb, right.resource, subresource=right.subresource)
            examination.rights.append((right, granted))
        examination.doubts += _doubts(examination)


def _doubts(examination: Examination) -> list[str]:
    lost: dict[str, list[str]] = {}
    for right, granted in examination.rights:
        if right.optional and not granted:
            lost.setdefault(right.needed_for, []).append(str(right))
    return [f"No {what}: these need {', '.join(rights)}." for what, rights in lost.items()]


def _check_identity(examination: Examination, connection: Connection | None) -> None:
    if (
        connection is not None
        and connection.identity
        and connection.identity != examination.identity
    ):
        raise sync.IdentityChanged(
            f"The cluster behind {examination.server} is another one than was registered."
        )
    if other := connections.registered(examination.identity, connection):
        raise errors.SameCluster(f"This cluster is registered already, as {other.cluster}.")


def _kind(
    client: ClusterClient, kind: str, versions: Sequence[Resource], needing: Sequence[str]
) -> KindResult:
    served = tuple(resource.api_version for resource in versions)
    if not versions and needing:
        return KindResult(kind, (), note=served_kinds.needed(kind, needing), is_needed=True)
    if not versions:
        return KindResult(kind, (), note="not served: nothing of it is shown")
    if kind != CILIUM_POD_IP_POOL.kind:
        return KindResult(kind, served)
    try:
        schema = client.schema(versions[0])
        shape = conversion.shape_of(schema).value if schema else ""
    except errors.InvalidInput as error:
        return KindResult(kind, served, note=error.message)
    except faults.ClusterFault as error:
        return KindResult(kind, served, note=f"its schema cannot be read: {error.message}")
    return KindResult(kind, served, shape, note="" if shape else "its schema is not shown")
