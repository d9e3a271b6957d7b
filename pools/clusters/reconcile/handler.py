"""What the engine and the handler of one kind of object say to each other."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pools.clusters.client.api_client import ClusterClient, Manifest, Projection
from pools.core.kubernetes.differences import POD_IP_POOL, Structure
from pools.core.kubernetes.resources import Resource
from pools.models import Cluster, Connection, ObservedObject
from pools.models.observed import Severity
from pools.platform import events

MANAGER = "cadastre"  # of the fields that we write
STATUS_MANAGER = "cadastre-status"  # before Kubernetes 1.22 one name for both would lose the other

ObjectKey = tuple[str, str]  # namespace and name of an object


def _no_proof() -> None:
    return None


def _unchanged(part: Manifest, _current: Manifest) -> Manifest:
    return part


@dataclass(frozen=True)
class SyncContext:
    """One pass over one cluster, as its handlers see it.

    `complete` holds the kinds whose list was complete in this pass; nothing that is not in there may
    be concluded to be gone. `holding()` opens a transaction that fails (LeaseLost) when another worker
    has the cluster meanwhile: every write to the database stands in one. `dry_run` handlers compute,
    and write nothing. `told` says that nothing was listed: a watch told of some objects, `touched`,
    and a handler may answer for these alone in `desired`. `prove()` raises when the cluster may not
    be written to any more.
    """

    cluster: Cluster
    connection: Connection
    client: ClusterClient
    author: events.Author
    holding: Callable[[], contextlib.AbstractContextManager[None]]
    dry_run: bool = False
    from_watch: bool = False
    served: dict[str, Resource] = field(default_factory=dict)  # by kind: the version that is read
    complete: set[str] = field(default_factory=set)
    # From a handler's `desired` to its `findings`, by kind.
    notes: dict[str, Any] = field(default_factory=dict)
    changed_keys: frozenset[ObjectKey] = frozenset()
    listed: dict[str, list[Manifest]] = field(default_factory=dict)  # by kind: not to be changed
    prove: Callable[[], None] = _no_proof


class ParsedObject(NamedTuple):
    """An object that is new or changed, as the handler's `parse` read it.

    A handler may set `row.pending` (look at it again in the next pass, although it did not change),
    and `row.problem_code` with `row.problem` (what is wrong with it, though it was taken in); both
    are empty when `absorb` is called, and the engine stores them.
    """

    row: ObservedObject
    parsed: Any


@dataclass(frozen=True)
class Write:
    """One object that may have to be written.

    `make` is given the object as it was listed, None where there is none, and answers what to send
    (another object: it changes nothing in what it was given), or None when nothing is to be done. It
    is asked again with a fresh object when another writer was quicker. `how` is `apply` (server-side,
    our fields only) or `replace` (the whole object, for kinds whose fields have several writers).
    With `send` False the differences are shown, and nothing is written. `structure` says which lists
    are maps. `fit` is given what is left to apply when fields of other managers are left out, and the
    object, and answers it so that both go together.
    """

    resource: Resource
    name: str
    make: Callable[[Manifest | None], Manifest | None]
    namespace: str = ""
    how: str = "apply"
    subresource: str = ""
    manager: str = MANAGER
    send: bool = True
    structure: Structure = POD_IP_POOL
    fit: Callable[[Manifest, Manifest], Manifest] = _unchanged

    @property
    def key(self) -> ObjectKey:
        return self.namespace, self.name


@dataclass(frozen=True)
class ReconcileFinding:
    """Something to tell people; it stands as long as a pass finds it again."""

    code: str
    subject: str
    message: str
    severity: Severity = Severity.WARNING
    details: dict[str, Any] = field(default_factory=dict)


class Handler(abc.ABC):
    """The verbs of one kind of object; a handler states those that its kind needs.

    `resources` are the versions of the kind, the preferred one first. `follows` names kinds: after a
    watch event of one of them, `desired` is called for this kind too. With `prompt`, `desired` is called
    within seconds of a change in the register, without a list, and once more after a write, so that a
    new object gets its status.
    """

    kind: str
    resources: Sequence[Resource]
    follows: tuple[str, ...] = ()
    prompt: bool = False

    def is_relevant(self, manifest: Manifest) -> bool:  # noqa: ARG002
        """Return False for an object to ignore, as if the cluster did not have it."""
        return True

    def project(self, manifest: Manifest) -> Manifest:
        """Return the part of the object that is kept, its identity included."""
        return manifest

    @abc.abstractmethod
    def parse(self, manifest: Manifest) -> Any:
        """Return the object as a value; InvalidInput leaves out this one object only."""

    def ingest(self, context: SyncContext, parsed_objects: Sequence[ParsedObject]) -> None:  # noqa: B027
        """Take in new and changed objects, and those with a problem or pending, many at once.

        The engine has opened the transaction. When this raises, the engine halves the batch until the
        object that causes it is alone.
        """

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:  # noqa: B027
        """Take in that objects are gone, after `absorb`, in a transaction of the engine.

        Two complete lists were without them, a watch reported their deletion, or another object has
        their name.
        """

    def desired(self, context: SyncContext) -> Iterable[Write]:  # noqa: ARG002
        """Return what should be written now, the connection's managed resources considered."""
        return ()

    def findings(self, context: SyncContext) -> Iterable[ReconcileFinding]:  # noqa: ARG002
        """Return what people should know; the engine calls `desired` first."""
        return ()


def projection_for(handler: Handler) -> Projection:
    """Return what keeps of an object of this kind what the handler needs, None for an ignored one."""

    def project(manifest: Manifest) -> Manifest | None:
        return handler.project(manifest) if handler.is_relevant(manifest) else None

    return project


# A handler, or what it is given, is not as it was thought to be: trouble of one object or kind. Not
# `Exception`: what ends a worker's work, such as a time limit, is none of these.
BUGS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
