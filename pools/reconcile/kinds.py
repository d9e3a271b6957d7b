"""What the engine and the handler of one kind of object say to each other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pools import events
from pools.clusters.client import Gateway, Manifest
from pools.core.resources import Resource
from pools.models import Cluster, Connection, ObservedObject
from pools.models.observed import Severity

MANAGER = "cadastre"  # of the fields that we write
STATUS_MANAGER = "cadastre-status"  # before Kubernetes 1.22 one name for both would lose the other


@dataclass(frozen=True)
class Pass:
    """One pass over one cluster, as its handlers see it.

    `complete` holds the kinds whose list was complete in this pass; nothing that is not in there may
    be concluded to be gone. `holding()` opens a transaction that fails (LeaseLost) when another worker
    has the cluster meanwhile: every write to the database stands in one. `dry_run` handlers compute,
    and write nothing. `told` says that nothing was listed: a watch told of some objects, and what it
    told may be older than what a pass has seen or written since.
    """

    cluster: Cluster
    connection: Connection
    gateway: Gateway
    by: events.Author
    holding: Callable[[], contextlib.AbstractContextManager[None]]
    dry_run: bool = False
    told: bool = False
    served: dict[str, Resource] = field(default_factory=dict)  # by kind: the version that is read
    complete: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seen:
    """An object that is new or changed, as the handler's `parse` read it."""

    row: ObservedObject
    parsed: Any


@dataclass(frozen=True)
class Write:
    """One object that may have to be written.

    `make` is given the object as the cluster has it now, None where there is none, and answers what
    to send, or None when nothing is to be done. It is asked again with a fresh object when another
    writer was quicker. `how` is `apply` (server-side, our fields only) or `replace` (the whole object
    with its resourceVersion, for kinds whose fields have several writers).
    """

    resource: Resource
    name: str
    make: Callable[[Manifest | None], Manifest | None]
    namespace: str = ""
    how: str = "apply"
    subresource: str = ""
    manager: str = MANAGER
    # Whether a field that differs is shown as a difference although nothing may be written.
    watched: bool = True


@dataclass(frozen=True)
class Found:
    """Something to tell people; it stands as long as a pass finds it again."""

    code: str
    subject: str
    message: str
    severity: Severity = Severity.WARNING
    details: dict[str, Any] = field(default_factory=dict)


class Handler(Protocol):
    """The verbs of one kind of object.

    `resources` are its versions, the preferred one first. `parse` raises InvalidInput for an object
    that cannot be understood; only that object is left out. `absorb` takes in new and changed objects,
    many at once, in one transaction that the engine has opened; when it raises IpamError the engine
    halves the batch until the culprit is alone. `forget` is called, in such a transaction, for objects
    that two complete lists were without, or whose deletion was seen. `desired` says what should be
    written now, duties considered, `findings` what is odd.
    """

    kind: str
    resources: Sequence[Resource]

    def parse(self, manifest: Manifest) -> Any: ...
    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None: ...
    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None: ...
    def desired(self, pass_: Pass) -> Iterable[Write]: ...
    def findings(self, pass_: Pass) -> Iterable[Found]: ...
