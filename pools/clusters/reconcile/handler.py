"""What the engine and the handler of one kind of object say to each other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pools.clusters.client.api_client import Gateway, Keep, Manifest
from pools.core.kubernetes.differences import POD_IP_POOL, Structure
from pools.core.kubernetes.resources import Resource
from pools.models import Cluster, Connection, ObservedObject
from pools.models.observed import Severity
from pools.platform import events

MANAGER = "cadastre"  # of the fields that we write
STATUS_MANAGER = "cadastre-status"  # before Kubernetes 1.22 one name for both would lose the other

Place = tuple[str, str]  # namespace and name of an object


def _unproven() -> None:
    return None


def _as_it_is(part: Manifest, _current: Manifest) -> Manifest:
    return part


@dataclass(frozen=True)
class Pass:
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
    gateway: Gateway
    by: events.Author
    holding: Callable[[], contextlib.AbstractContextManager[None]]
    dry_run: bool = False
    told: bool = False
    served: dict[str, Resource] = field(default_factory=dict)  # by kind: the version that is read
    complete: set[str] = field(default_factory=set)
    # From a handler's `desired` to its `findings`, by kind.
    notes: dict[str, Any] = field(default_factory=dict)
    touched: frozenset[Place] = frozenset()
    listed: dict[str, list[Manifest]] = field(default_factory=dict)  # by kind: not to be changed
    prove: Callable[[], None] = _unproven


class Seen(NamedTuple):
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
    fit: Callable[[Manifest, Manifest], Manifest] = _as_it_is

    @property
    def place(self) -> Place:
        return self.namespace, self.name


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
    and those with a problem or pending, many at once, in one transaction that the engine has opened;
    when it raises, the engine halves the batch until the culprit is alone. `forget` is called, in
    such a transaction, for objects that are gone: two complete lists were without them, their
    deletion was told, or another object has their name. It comes after `absorb`. `desired` says what
    should be written now, duties considered, `findings` what is odd; the engine asks `desired` first.

    Two attributes may be added. `follows = ("CiliumPodIPPool",)`: what is desired is asked after
    changes of these kinds, too, that a watch told.

    `prompt = True`: when something changed in the register, what is desired is asked within seconds,
    without a list; and once more after something was written, so that a new object gets its status.

    Two more, for kinds that are only read and of which a cluster may have very many: `wants(manifest)`
    says whether an object is of interest, any other is as if it were not there; `slim(manifest)`
    answers what is kept of one, its identity included, which is then all that the handler sees.
    """

    kind: str
    resources: Sequence[Resource]

    def parse(self, manifest: Manifest) -> Any: ...
    def absorb(self, pass_: Pass, seen: Sequence[Seen]) -> None: ...
    def forget(self, pass_: Pass, rows: Sequence[ObservedObject]) -> None: ...
    def desired(self, pass_: Pass) -> Iterable[Write]: ...
    def findings(self, pass_: Pass) -> Iterable[Found]: ...


def keeping(handler: Handler) -> Keep | None:
    """What is kept of an object of this kind, None for one that is of no interest; None keeps all."""
    wants, slim = getattr(handler, "wants", None), getattr(handler, "slim", None)
    if wants is None and slim is None:
        return None

    def keep(manifest: Manifest) -> Manifest | None:
        if wants is not None and not wants(manifest):
            return None
        kept: Manifest = slim(manifest) if slim is not None else manifest
        return kept

    return keep


# A handler, or what it is given, is not as it was thought to be: trouble of one object or kind. Not
# `Exception`: what ends a worker's work, such as a time limit, is none of these.
BUGS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
