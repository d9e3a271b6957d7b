"""What endpoints of VM networks share: the limit to objects that the user may see, and responses with a manifest."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.models import IPAMClaim, IPPool, Network, VMImport
from pools.api import lookups
from pools.core import errors
from pools.models import Cluster
from pools.platform import documents
from pools.platform.rest import fields, filters, generics, token_scopes

for parameter, model in (
    ("network_id", Network),
    ("ippool_id", IPPool),
    ("claim_id", IPAMClaim),
    ("import_id", VMImport),
):
    token_scopes.register_path_object(parameter, model)

Row = TypeVar("Row", bound=Model)


def request_scope(request: Request) -> namespaces.Scope:
    """Return the scope of the request's user; it is determined once per request."""
    django_request: Any = request._request
    scope: namespaces.Scope | None = getattr(django_request, "claims_scope", None)
    if scope is None:
        scope = django_request.claims_scope = namespaces.scope(request.user)
    return scope


def rows(request: Request, model: type[Row]) -> QuerySet[Row]:
    """Return all rows of a table that the user may see."""
    return namespaces.visible(model._default_manager.all(), request_scope(request))


def get_row(request: Request, queryset: type[Row] | QuerySet[Row], number: int) -> Row:
    """Return the row with this id; raise the same NotFound for a hidden and a missing one."""
    all_rows = queryset._default_manager.all() if isinstance(queryset, type) else queryset
    row: Row | None = namespaces.visible(all_rows, request_scope(request)).filter(pk=number).first()
    if row is None:
        raise errors.NotFound("There is no such object.")
    return row


def cluster_parser(request: Request) -> Callable[[object, str], Cluster]:
    """Return a parser for the name or id of a cluster, for bodies and queries.

    The parser raises `unknown_cluster` for a missing and for a hidden cluster.
    """

    def parse(value: object, path: str) -> Cluster:
        cluster = lookups.find_cluster(value) if isinstance(value, str) else None
        if cluster is None or not knows_cluster(request, cluster):
            raise lookups.unknown_cluster(value, path)
        return cluster

    return parse


def knows_cluster(request: Request, cluster: Cluster) -> bool:
    """Return True if the user sees all namespaces, or some of the cluster."""
    scope = request_scope(request)
    return scope.everything or cluster.pk in scope.namespaces


class ScopedView(generics.GenericView):
    """An endpoint whose `queryset` is limited to the rows that the user may see.

    A hidden row is answered like a missing one. Its view sets: `class Networks(ScopedView, generics.ModelViewSet)`.
    """

    def get_queryset(self) -> QuerySet[Any]:
        return namespaces.visible(super().get_queryset(), request_scope(self.request))


class ScopedFilterSet(filters.FilterSet):
    """The filters of a list of scoped rows that belong to a cluster."""

    cluster = filters.Filter("parse_cluster", help_text="Name or id.")

    def parse_cluster(self, value: str, parameter: str) -> Cluster:
        return cluster_parser(self.request)(value, parameter)


class ClusterField(fields.TextField):
    """A cluster that the user may see, by name or id; unknown_cluster. It is shown by its name."""

    def to_internal_value(self, data: Any) -> Cluster:
        return cluster_parser(self.context["request"])(data, "")


MANIFEST_FORMAT = filters.parameters(
    format=filters.choice("json", "yaml", help_text="json (default) or yaml")
)


def manifest_answer(manifest: Mapping[str, Any], output_format: str | None) -> generics.Answer:
    if output_format == "yaml":
        return HttpResponse(documents.dump_yaml(manifest), content_type="application/yaml")
    return Response(manifest)
