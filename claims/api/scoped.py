"""What every endpoint of VM networks asks first: what does this user see?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request

from claims.access import namespaces
from pools.api import lookups
from pools.core import errors
from pools.models import Cluster

Row = TypeVar("Row", bound=Model)


def seen(request: Request) -> namespaces.Scope:
    """What whoever asks sees; worked out once for a request."""
    plain: Any = request._request
    found: namespaces.Scope | None = getattr(plain, "claims_scope", None)
    if found is None:
        found = plain.claims_scope = namespaces.scope(request.user)
    return found


def rows(request: Request, model: type[Row]) -> QuerySet[Row]:
    """All rows of a table that whoever asks sees."""
    return namespaces.visible(model._default_manager.all(), seen(request))


def one(request: Request, found: type[Row] | QuerySet[Row], number: int) -> Row:
    """The row of that id, if it is seen; NotFound in the same words for foreign and absent ones."""
    every = found._default_manager.all() if isinstance(found, type) else found
    row: Row | None = namespaces.visible(every, seen(request)).filter(pk=number).first()
    if row is None:
        raise errors.NotFound("There is no such object.")
    return row


def cluster(request: Request) -> Callable[[object, str], Cluster]:
    """A parser of a cluster's name or id, for bodies and queries; unknown_cluster for unseen ones."""

    def parse(value: object, at: str) -> Cluster:
        found = lookups.find_cluster(value) if isinstance(value, str) else None
        everything = seen(request).everything
        if found is None or not (everything or found.pk in seen(request).namespaces):
            raise errors.InvalidInput.for_field(
                at, "unknown_cluster", "there is no such cluster", value
            )
        return found

    return parse
