"""The interface between the engine and the handler of one kind of object."""

import abc
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pools.clusters.client.api_client import ClusterClient, Projection
from pools.core import redaction
from pools.core.kubernetes.differences import POD_IP_POOL, Structure
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Cluster, Connection, ObservedObject, Severity
from pools.platform import events

MANAGER = "cadastre"  # field manager of our writes
STATUS_MANAGER = "cadastre-status"  # before Kubernetes 1.22 one name for both would lose the other

ObjectKey = tuple[str, str]  # namespace and name of an object


def _unchanged(part: Manifest, _current: Manifest) -> Manifest:
    return part


@dataclass(frozen=True)
class SyncContext:
    """The context of one sync of one cluster for its handlers.

    `complete` has the kinds whose list was complete in this sync; objects of other kinds must not be
    treated as deleted. `transaction()` opens a transaction that raises LeaseLost if another worker has the
    cluster by now; every write to the database is in such a transaction. In a `dry_run` handlers compute
    and write nothing. `from_watch` means that nothing was listed: watch events reported the objects
    `changed_keys`, and `desired` may return writes of these only. `prove()` raises if the cluster must not
    be written any more. `failures` has the objects that failed alone, by the handler's kind and by finding subject.
    """

    cluster: Cluster
    connection: Connection
    client: ClusterClient
    author: events.Author
    transaction: Callable[[], contextlib.AbstractContextManager[None]]
    dry_run: bool = False
    from_watch: bool = False
    served: dict[str, Resource] = field(default_factory=dict)  # by kind: the version that is read
    complete: set[str] = field(default_factory=set)
    # From a handler's `desired` to its `findings`, by kind.
    notes: dict[str, Any] = field(default_factory=dict)
    changed_keys: frozenset[ObjectKey] = frozenset()
    listed: dict[str, list[Manifest]] = field(default_factory=dict)  # by kind; read-only
    prove: Callable[[], None] = lambda: None
    failures: dict[str, dict[str, str]] = field(default_factory=dict)


class ParsedObject(NamedTuple):
    """A new or changed object, and the result of the handler's `parse`.

    A handler may set `row.pending` (ingest it again in the next sync, although it did not change), and
    `row.problem_code` with `row.problem` (a problem of an ingested object). Both are empty when `ingest` is
    called; the engine stores them.
    """

    row: ObservedObject
    parsed: Any


@dataclass(frozen=True)
class Write:
    """A possible write of one object.

    `make` takes the observed object, or None, and returns the manifest to send (a new object), or None for
    no change. It is called again with a fresh object after a conflict with another writer. `how` is
    `apply` (server-side, our fields only), `replace` (the whole object, for kinds whose fields have
    several writers) or `delete` (`make` returns the object as it is, if it is to be deleted). If `send` is False, differences are reported and nothing is written. `structure`
    names the lists that are maps. `fit` takes the manifest without fields of other managers and the
    object, and returns the manifest adjusted to the object.
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
    """A finding of a sync; it is stored until a sync no longer reports it."""

    code: str
    subject: str
    message: str
    severity: Severity = Severity.WARNING
    details: dict[str, Any] = field(default_factory=dict)


class Handler(abc.ABC):
    """The operations on one kind of object; a handler overrides those that its kind needs.

    `resources` are the versions of the kind, the preferred one first. `follows` names kinds: after a
    watch event of one of them, `desired` is called for this kind too. With `prompt`, `desired` is called
    within seconds of a change in the register, without a list, and once more after a write, so that a
    new object gets its status. A kind that is not `watched` is read by full syncs only, unless it `is_polled`. With
    `problems_are_findings`, an object with a problem is a finding, and does not make the sync incomplete.
    """

    kind: str
    resources: Sequence[Resource]
    follows: tuple[str, ...] = ()
    prompt: bool = False
    watched: bool = True
    problems_are_findings: bool = False

    def is_affected(self, context: SyncContext) -> bool:  # noqa: ARG002
        """Return False if events of the kinds that this one follows change nothing now."""
        return True

    def is_polled(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return True for a kind that is not watched, but read once a minute between full syncs."""
        return False

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
        """Import new and changed objects, and those with a problem or pending, many at once.

        The engine has opened the transaction. If this raises, the engine halves the batch until the
        object that causes it is alone.
        """

    def forget(self, context: SyncContext, rows: Sequence[ObservedObject]) -> None:  # noqa: B027
        """Remove deleted objects from the register, after `ingest`, in a transaction of the engine.

        Two complete lists were without them, a watch reported their deletion, or another object has
        their name.
        """

    def desired(self, context: SyncContext) -> Iterable[Write]:  # noqa: ARG002
        """Return the writes that are due now, for the managed resources of the connection."""
        return ()

    def findings(self, context: SyncContext) -> Iterable[ReconcileFinding]:  # noqa: ARG002
        """Return the current findings; the engine calls `desired` first."""
        return ()


def projection_for(handler: Handler) -> Projection:
    """Return the projection of the handler; it returns None for an object to ignore."""

    def project(manifest: Manifest) -> Manifest | None:
        if not handler.is_relevant(manifest):
            return None
        return _redact_conditions(handler.project(manifest))

    return project


def _redact_conditions(manifest: Manifest) -> Manifest:
    """Return an object without secrets in the messages of its conditions: controllers quote errors there."""
    status = manifest.get("status")
    if not isinstance(status, dict) or not isinstance(status.get("conditions"), list):
        return manifest
    conditions = status["conditions"]
    redacted = redaction.redact_values(conditions)
    return (
        manifest
        if redacted == conditions
        else {**manifest, "status": {**status, "conditions": redacted}}
    )


# Programming errors, or unexpected input of a handler; they affect one object or kind. `Exception` would
# include errors that must end the work of a worker, such as a time limit.
BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
