"""Environments of tenants: declare, describe and remove them.

An environment that nobody declared appears with its first allocation (pools/sql/allocate.sql).
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from pools.core import errors
from pools.models import AllocationRequest, Block, BlockState, Cluster, Environment, RequestState
from pools.platform import database, events

_MOST_NAMED = 5  # holders and requests in a message


def declare(
    cluster: Cluster, org: str, env: str, *, author: events.Author, description: str = ""
) -> Environment:
    """Create an environment before its first allocation. Raises AlreadyExists."""
    with events.recorded_by(author):
        environment = Environment(
            cluster=cluster,
            org=org,
            env=env,
            description=description,
            declared_at=database.now(),
        )
        if Environment.objects.filter(cluster=cluster, org=org, env=env).exists():
            raise errors.AlreadyExists(f"The cluster {cluster} has the environment {environment}.")
        database.save(environment)
    return environment


def change(
    environment_id: int,
    *,
    description: str,
    author: events.Author,
    version: database.Version = None,
) -> Environment:
    """Change the description. Raises NotFound, VersionMismatch."""
    with events.recorded_by(author):
        for row in Environment.objects.select_for_update().filter(pk=environment_id):
            database.require_version(row, version)
        Environment.objects.filter(pk=environment_id).exclude(description=description).update(
            description=description
        )
    return get_environment(environment_id)


def remove(environment_id: int, *, author: events.Author) -> None:
    """Remove an environment that holds nothing.

    Raises NotFound, or EnvironmentInUse with the held blocks and the pending requests. The row is deleted
    before they are counted: an allocation that commits in the meantime is seen, and a later one makes
    the environment appear again.
    """
    environment = get_environment(environment_id)
    with events.recorded_by(author):
        environment.delete()
        if holdings := list(_holdings(environment)):
            raise errors.EnvironmentInUse(
                f"The environment {environment} has {' and '.join(holdings)}."
            )


def get_environment(environment_id: int) -> Environment:
    """Return an environment with its cluster. Raises NotFound."""
    environment = Environment.objects.select_related("cluster").filter(pk=environment_id).first()
    if environment is None:
        raise errors.NotFound("There is no such environment.")
    return environment


def blocks(environment: Environment) -> QuerySet[Block]:
    """Return the blocks that name the environment: held, cooling and available."""
    return Block.objects.filter(
        env=environment.env, org=environment.org, pool__cluster=environment.cluster_id
    )


def pending_requests(environment: Environment) -> QuerySet[AllocationRequest]:
    return AllocationRequest.objects.filter(
        env=environment.env,
        org=environment.org,
        pool__cluster=environment.cluster_id,
        state=RequestState.PENDING,
    )


def _holdings(environment: Environment) -> Iterator[str]:
    held = blocks(environment).filter(state=BlockState.HELD).order_by("space_id", "cidr")
    yield from _list_names(
        held, "held block", lambda block: f"{block.cidr} of {block.holder_kind} {block.holder_id}"
    )
    yield from _list_names(
        pending_requests(environment).order_by("pk"),
        "pending request",
        lambda request: f"{request.pk} for {request.holder_kind} {request.holder_id}",
    )


def _list_names(rows: QuerySet[Any], what: str, name: Any) -> Iterator[str]:
    count = rows.count()
    if count:
        names = ", ".join(map(name, rows[:_MOST_NAMED]))
        more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
        yield f"{count} {what}{'s' * (count > 1)} ({names}{more})"
