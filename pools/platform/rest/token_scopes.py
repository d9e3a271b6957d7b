"""API tokens, which are created with limits: a level of rights, and one cluster or one pool.

A level takes rights away from the token's owner (`usable_permissions`). A limit to a cluster or a pool holds
for endpoints that are about one object in it, and for lists that have a filter for it; all other endpoints
are closed to such a token, new ones too until they say how they are limited.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Model, Q
from knox.models import AuthToken
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from pools.core import errors, holders
from pools.models import (
    AllocationRequest,
    Block,
    Cluster,
    Environment,
    Pool,
    TokenLevel,
    TokenScope,
)
from pools.platform import events
from pools.platform.rest import parsing

# What the level "allocate" has beside permissions to view: blocks, and the addresses of VMs.
_ALLOCATING = frozenset(
    {
        "pools.allocate",
        "claims.request_address",
        *(
            f"claims.{verb}_{name}"
            for verb in ("add", "change")
            for name in ("entry", "ipamclaim", "vmimport")
        ),
        "claims.delete_entry",
        "claims.delete_ipamclaim",
    }
)


@dataclass(frozen=True)
class Limits:
    """What one token may do at most; see models.TokenScope."""

    level: TokenLevel
    cluster_id: int | None = None
    pool_id: int | None = None

    @property
    def is_confined(self) -> bool:
        """True for a token of one cluster or pool."""
        return self.cluster_id is not None or self.pool_id is not None

    def hides(self, kind: str) -> bool:
        """Return True if the token may know no other object of the kind, "cluster" or "pool"."""
        return self.pool_id is not None or (kind == "cluster" and self.cluster_id is not None)

    def usable_permissions(self, permissions: Iterable[str]) -> set[str]:
        """Return those of the owner's permissions that the token's level includes."""
        if self.level == TokenLevel.ADMINISTER:
            return set(permissions)
        allocates = self.level == TokenLevel.ALLOCATE
        return {
            name
            for name in permissions
            if name.partition(".")[2].startswith("view_") or (allocates and name in _ALLOCATING)
        }


class _PathObject(NamedTuple):
    model: type[Model]
    cluster: str  # lookup of the id of its cluster
    pool: str | None  # lookup of the id of its pool; None for objects that belong to no pool


_path_objects = {
    "pool_id": _PathObject(Pool, "cluster_id", "pk"),
    "block_id": _PathObject(Block, "pool__cluster_id", "pool_id"),
    "request_id": _PathObject(AllocationRequest, "pool__cluster_id", "pool_id"),
    "environment_id": _PathObject(Environment, "cluster_id", None),
}


def register_path_object(parameter: str, model: type[Model]) -> None:
    """Say to which cluster the object belongs whose id is this parameter of a path."""
    _path_objects[parameter] = _PathObject(model, "cluster_id", None)


def limits_of(token: Any) -> Limits | None:
    """Return the limits of an authenticated token; None without any, and for a session."""
    limits: Limits | None = getattr(token, "limits", None)
    return limits


def explain_missing(token: Any, permissions: Iterable[str]) -> None:
    """Raise TokenScope if the token's owner has these permissions, and only its level takes them away."""
    limits = limits_of(token)
    if limits is not None and {*permissions} <= token.withheld:
        raise _refusal(limits)


def _refusal(limits: Limits) -> errors.TokenScope:
    verbs = "read" if limits.level == TokenLevel.READ else "read and allocate"
    return errors.TokenScope(f"This token may only {verbs}.")


def enforce(request: Request, view: Any) -> None:
    """Raise TokenScope or NotFound unless the request's token may be used for this endpoint."""
    limits = limits_of(request.auth)
    if limits is None or request.method == "OPTIONS":
        return
    is_reading = request.method in SAFE_METHODS or view.posts_a_question
    if limits.level == TokenLevel.READ and not is_reading:
        raise _refusal(limits)
    if limits.is_confined:
        _confine(request, view, limits)


def _confine(request: Request, view: Any, limits: Limits) -> None:
    cluster, pool = _read_subject(limits)
    subject = f"the pool {pool.name}" if pool else f"the cluster {cluster.name}"
    path = {name: value for name, value in view.kwargs.items() if name in _path_objects}
    named_cluster = view.kwargs.get("cluster")
    if path or (named_cluster is not None and pool is None):
        is_inside = all(_is_inside(limits, name, value) for name, value in path.items())
        if not is_inside or (named_cluster is not None and not _names(cluster, named_cluster)):
            raise errors.NotFound(view.absent)
    elif request.method in SAFE_METHODS and ("pool" if pool else "cluster") in view.limited_by:
        _narrow_list(request, {"cluster": cluster} | ({"pool": pool} if pool else {}), subject)
    elif not (pool is None and request.method == "POST" and view.limited_by_body):
        raise errors.TokenScope(f"This endpoint is closed to a token of {subject}.")
    elif not _names(cluster, _cluster_of_body(request, view)):
        raise errors.TokenScope(f"This token is limited to {subject}.")


def _read_subject(limits: Limits) -> tuple[Cluster, Pool | None]:
    if limits.pool_id is not None:
        pool = Pool.objects.select_related("cluster").filter(pk=limits.pool_id).first()
        if pool is not None:
            return pool.cluster, pool
    elif limits.cluster_id is not None:
        cluster = Cluster.objects.filter(pk=limits.cluster_id).first()
        if cluster is not None:
            return cluster, None
    raise errors.TokenScope("What this token was limited to has been removed.")


def _is_inside(limits: Limits, parameter: str, value: int) -> bool:
    model, cluster, pool = _path_objects[parameter]
    if limits.pool_id is None:
        condition = {cluster: limits.cluster_id}
    elif pool is None:
        return False
    else:
        condition = {pool: limits.pool_id}
    return model._default_manager.filter(pk=value).filter(**condition).exists()


def _names(cluster: Cluster, value: object) -> bool:
    """Return True for the cluster's name, and for its id unless another cluster has it as its name."""
    return value == cluster.name or (
        value == str(cluster.pk) and not Cluster.objects.filter(name=value).exists()
    )


def _cluster_of_body(request: Request, view: Any) -> object:
    if parsing.media_type(request) != parsing.JSON:
        return request._request.POST.get("cluster")
    body = parsing.document(request, limit=view.largest_body)
    return body.get("cluster") if isinstance(body, dict) else None


def _narrow_list(request: Request, rows: dict[str, Any], subject: str) -> None:
    """Add the filters that keep the list inside; names, as an id may be the name of another row."""
    parameters = request.query_params.copy()
    for name, row in rows.items():
        if not set(parameters.getlist(name)) <= {"", row.name, str(row.pk)}:
            raise errors.TokenScope(f"This token is limited to {subject}.")
        parameters[name] = row.name
    if "pool" not in rows:
        for name in filter(None, parameters.getlist("pool")):
            _require_pool(rows["cluster"], name)
    request._request.GET = parameters  # type: ignore[assignment]  # a mutable QueryDict


def _require_pool(cluster: Cluster, text: str) -> None:
    """Raise InvalidInput (unknown_pool) for pools of other clusters too: an empty list would show that they exist."""
    is_id = text.isascii() and text.isdigit() and len(text) < 18
    pools = Pool.objects.filter(Q(name=text) | Q(pk=int(text) if is_id else None), cluster=cluster)
    if "\0" not in text and not pools.exists():
        raise errors.InvalidInput.for_field("pool", "unknown_pool", "there is no such pool", text)


LONGEST_VALIDITY = 3650  # days
COMMAND = events.Author(actor="manage.py", source="command")


class Subject(NamedTuple):
    """The one cluster or the one pool that a token is limited to."""

    cluster: Cluster | None = None
    pool: Pool | None = None

    def __str__(self) -> str:
        if self.pool is not None:
            return f"{self.pool.cluster.name}/{self.pool.name}"
        return self.cluster.name if self.cluster else ""


ANYTHING = Subject()


def parse_subject(text: str, *, field: str = "limited_to") -> Subject:
    """Return the subject that `cluster` or `cluster/pool` names; "" is no limit.

    Raises InvalidInput k8s_name, unknown_cluster, unknown_pool.
    """
    if not text:
        return ANYTHING
    cluster_name, slash, pool_name = text.partition("/")
    cluster = Cluster.objects.filter(name=holders.parse_name(cluster_name, field=field)).first()
    if cluster is None:
        raise errors.InvalidInput.for_field(
            field, "unknown_cluster", "there is no such cluster", cluster_name
        )
    if not slash:
        return Subject(cluster=cluster)
    pools = Pool.objects.filter(cluster=cluster, name=holders.parse_name(pool_name, field=field))
    pool = pools.select_related("cluster").first()
    if pool is None:
        raise errors.InvalidInput.for_field(
            field, "unknown_pool", "the cluster has no such pool", pool_name
        )
    return Subject(pool=pool)


def create_token(
    owner: Any,
    *,
    author: events.Author = COMMAND,
    validity: timedelta | None = None,
    level: str = TokenLevel.ADMINISTER,
    subject: Subject = ANYTHING,
    description: str = "",
) -> str:
    """Create a token and return its text, of which the register stores only the digest.

    Without a validity it is valid for TOKEN_DAYS. A trigger records the event, which names owner and author.
    """
    tokens: Any = AuthToken.objects
    with events.recorded_by(author):
        row, text = tokens.create(owner, **({} if validity is None else {"expiry": validity}))
        TokenScope.objects.create(
            token=row,
            level=level,
            cluster=subject.cluster,
            pool=subject.pool,
            description=description,
        )
    return str(text)
