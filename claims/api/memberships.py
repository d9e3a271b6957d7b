"""Endpoints of memberships: the VM owners of namespaces. Users without permissions see their own.

Memberships that a cluster's RoleBindings make are listed too; they are changed in the cluster.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request

from claims.access import cluster_owners, memberships, namespaces
from claims.api import scoped
from claims.models import AnyMembership, Membership
from claims.models.access import Role
from claims.models.cluster_owners import MembershipSource
from pools.core import block_fields, errors, holders, object_reader
from pools.models import Cluster
from pools.platform import events, idempotency
from pools.platform.rest import openapi, pagination, parsing, query, views

_ROLE = {"type": "string", "enum": list(Role.values)}
_NAMES = {
    "type": "array",
    "items": openapi.TEXT,
    "minItems": 1,
    "maxItems": memberships.MAX_NAMESPACES,
}
_IN = openapi.shape(
    "cluster namespaces",
    user=openapi.TEXT,
    group=openapi.TEXT,
    cluster=openapi.TEXT,
    namespaces=_NAMES,
    role=_ROLE,
)
_OUT = openapi.shape(
    "id cluster namespaces role source",
    id=openapi.WHOLE,
    user=openapi.nullable(openapi.TEXT),
    group=openapi.nullable(openapi.TEXT),
    cluster=openapi.TEXT,
    namespaces=openapi.listed(openapi.TEXT),
    role=_ROLE,
    created_at=openapi.TIME,
    source={"type": "string", "enum": list(MembershipSource.values)},
    cluster_role=openapi.nullable(openapi.TEXT),
    role_binding=openapi.nullable(openapi.TEXT),
)
_EXAMPLE = OpenApiExample(
    "one user",
    {"user": "vera", "cluster": "prod", "namespaces": ["shop"], "role": "vm-owner"},
    request_only=True,
)
_LIST = openapi.says(
    "List memberships: all for administrators, their own for other users",
    {200: openapi.page(_OUT)},
    parameters=openapi.query(
        cluster="name or id",
        user="by name",
        group="by name",
        namespace="one of its namespaces",
        source="local, or cluster: made by a RoleBinding",
        **openapi.PAGED,
    ),
)
_CREATE = openapi.writes("Add a VM owner", {201: _OUT}, _IN, examples=[_EXAMPLE])
_ONE = openapi.says("Get a membership", {200: _OUT}, fails="404")
_CHANGE = openapi.says(
    "Change the namespaces of a membership",
    {200: _OUT},
    fails="404 409 411 413 415",
    **openapi.body(openapi.shape(namespaces=_NAMES, role=_ROLE) | openapi.SOMETHING),
)
_DELETE = openapi.says("Revoke a membership", {204: None}, fails="404 409")


class Memberships(views.View):
    needs = {"GET": (), "POST": ("claims.add_membership",)}

    @extend_schema(**_LIST)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = _visible_memberships(request)
        if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
            rows = rows.filter(cluster=cluster)
        if user := parameters.text("user"):
            rows = rows.filter(Q(user__username=user) | Q(subject_user=user))
        if group := parameters.text("group"):
            rows = rows.filter(Q(group__name=group) | Q(subject_group=group))
        if namespace := parameters.text("namespace"):
            rows = rows.filter(namespaces__contains=[namespace])
        if source := parameters.parse("source", query.choice(*MembershipSource.values)):
            rows = rows.filter(source=source)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=_OUT["properties"],
                shape=_shapes,
            )
        )

    @extend_schema(**_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, "user", "group", "cluster", "namespaces", "role")
        values = _parse_membership(body, request)
        stored = views.run_once(request, lambda: _create(values, views.author(request)))
        return views.answer(stored.answer, status=stored.status)


class MembershipView(views.View):
    needs = {
        "GET": (),
        "PATCH": ("claims.change_membership",),
        "DELETE": ("claims.delete_membership",),
    }

    @extend_schema(**_ONE)
    def get(self, request: Request, membership_id: int) -> views.Answer:
        return views.answer(_shape(_get(request, membership_id)))

    @extend_schema(**_CHANGE)
    def patch(self, request: Request, membership_id: int) -> views.Answer:
        body = parsing.changes(request, "namespaces", "role")
        _check_role(body)
        names = None
        if body.has("namespaces"):
            names = body.parse("namespaces", memberships.parse_namespaces)
        body.report.raise_any()
        membership = _get_local(request, membership_id)
        if names is not None:
            memberships.change(membership, names, author=views.author(request))
        return views.answer(_reload_shape(membership))

    @extend_schema(**_DELETE)
    def delete(self, request: Request, membership_id: int) -> views.Answer:
        memberships.delete(_get_local(request, membership_id), author=views.author(request))
        return views.no_content()


def _visible_memberships(request: Request) -> QuerySet[AnyMembership]:
    """Return all effective memberships, or those of the user without permission to view all."""
    rows = AnyMembership.objects.filter(
        Q(source=MembershipSource.LOCAL) | Q(cluster_role__in=cluster_owners.roles())
    )
    if request.user.has_perm("claims.view_membership"):
        return rows
    local, clusters = namespaces.of_user(request.user), cluster_owners.of_user(request.user)
    return rows.filter(Q(pk__in=local.values("pk")) | Q(pk__in=clusters.values("pk")))


def _get(request: Request, number: int) -> AnyMembership:
    membership = _visible_memberships(request).filter(pk=number).first()
    if membership is None:
        raise errors.NotFound("There is no such object.")
    return membership


def _get_local(request: Request, number: int) -> Membership:
    """Return a membership that was added here; raise ClusterDecides for one of a RoleBinding."""
    membership = _get(request, number)
    if membership.source == MembershipSource.CLUSTER:
        raise errors.ClusterDecides(
            f"The cluster {membership.cluster} makes this VM owner by its RoleBinding"
            f" {membership.namespaces[0]}/{membership.binding}: change or delete that there."
        )
    return Membership.objects.get(pk=number)


def _parse_membership(body: object_reader.Fields, request: Request) -> dict[str, Any]:
    _check_role(body)
    values: dict[str, Any] = {
        "cluster": body.parse("cluster", scoped.cluster_parser(request)),
        "namespaces": body.parse("namespaces", memberships.parse_namespaces),
    }
    if body.has("user") == body.has("group"):
        body.report.add("user", "required", "name either a user or a group")
    elif body.has("user"):
        values["user"] = body.parse("user", _parse_user)
    else:
        values["group"] = body.parse("group", _parse_group)
    body.report.raise_any()
    return values


def _check_role(body: object_reader.Fields) -> None:
    """Validate `role` if the body has it; there is only one role."""
    if body.has("role"):
        body.parse(
            "role", lambda value, field_path: parsing.choice(value, field_path, tuple(Role.values))
        )


def _parse_user(value: object, field_path: str) -> Any:
    user = get_user_model().objects.filter(username=_parse_name(value, field_path)).first()
    if user is None:
        raise errors.InvalidInput.for_field(
            field_path, "unknown_user", "there is no such user", value
        )
    return user


def _parse_group(value: object, field_path: str) -> str:
    return holders.parse_identifier(
        value, field=field_path, max_length=memberships.MAX_GROUP_LENGTH
    )


def _parse_name(value: object, field_path: str) -> str:
    return holders.parse_identifier(value, field=field_path)


def _create(values: dict[str, Any], author: events.Author) -> idempotency.Stored:
    return idempotency.Stored(201, _reload_shape(memberships.create(author=author, **values)))


def _reload_shape(membership: Membership) -> dict[str, Any]:
    return _shape(AnyMembership.objects.get(pk=membership.pk))


def _shape(membership: AnyMembership) -> dict[str, Any]:
    return _shapes([membership.__dict__])[0]


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows})
    users = get_user_model().objects.in_bulk({row["user_id"] for row in rows} - {None})
    groups = Group.objects.in_bulk({row["group_id"] for row in rows} - {None})
    return [
        {
            "id": row["id"],
            "user": users[row["user_id"]].get_username()
            if row["user_id"]
            else row["subject_user"] or None,
            "group": groups[row["group_id"]].name
            if row["group_id"]
            else row["subject_group"] or None,
            "cluster": clusters[row["cluster_id"]].name,
            "namespaces": row["namespaces"],
            "role": row["role"],
            "created_at": block_fields.time(row["created_at"]),
            "source": row["source"],
            "cluster_role": row["cluster_role"] or None,
            "role_binding": row["binding"] or None,
        }
        for row in rows
    ]


urlpatterns = [
    path("memberships/", Memberships.as_view(), name="memberships"),
    path("memberships/<int:membership_id>/", MembershipView.as_view(), name="membership"),
]
