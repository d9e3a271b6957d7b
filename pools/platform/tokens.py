"""Creation of API tokens, with what limits them (models.TokenScope)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from knox.models import AuthToken

from pools.core import errors, holders
from pools.models import Cluster, Pool, TokenLevel, TokenScope
from pools.platform import events

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


def create(
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
