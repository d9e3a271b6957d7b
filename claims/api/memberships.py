"""Endpoints of memberships: the VM owners of namespaces. Users without permissions see their own.

Memberships that a cluster's RoleBindings make are listed too; they are changed in the cluster.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from claims.access import cluster_owners, memberships, namespaces
from claims.api import scoped
from claims.models import AnyMembership, Membership
from claims.models.cluster_owners import MembershipSource, Role
from pools.core import errors, holders, object_reader
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Serializer

_NAMES_LENGTH = {"min_length": 1, "max_length": memberships.MAX_NAMESPACES}


def _parse_user(value: object, field_path: str) -> Any:
    name = holders.parse_identifier(value, field=field_path)
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise errors.InvalidInput.for_field(
            field_path, "unknown_user", "there is no such user", value
        )
    return user


def _parse_group(value: object, field_path: str) -> str:
    return holders.parse_identifier(
        value, field=field_path, max_length=memberships.MAX_GROUP_LENGTH
    )


class _OptionalTextField(fields.TextField):
    """Text; null for the empty one that stands for nothing in the database."""

    def to_representation(self, value: Any) -> Any:
        return str(value) or None


class MembershipChangeSerializer(Serializer):
    """A change of a membership."""

    namespaces = fields.ListField(
        memberships.parse_namespaces, child=fields.TextField(), required=False, **_NAMES_LENGTH
    )
    role = fields.ChoiceField(Role.values, required=False)


class MembershipSerializer(Serializer):
    """The namespaces of a cluster whose VMs a user, or the users of a group, own."""

    id = fields.IntegerField(read_only=True)
    user = _OptionalTextField(_parse_user, source="user_name", required=False, allow_null=True)
    group = _OptionalTextField(_parse_group, source="group_name", required=False, allow_null=True)
    cluster = scoped.ClusterField(source="cluster.name")
    namespaces = fields.ListField(
        memberships.parse_namespaces, child=fields.TextField(), **_NAMES_LENGTH
    )
    role = fields.ChoiceField(Role.values, required=False)
    created_at = fields.TimeField(read_only=True)
    source: Any = fields.ChoiceField(MembershipSource.values, read_only=True)
    cluster_role = _OptionalTextField(read_only=True, allow_null=True)
    role_binding = _OptionalTextField(source="binding", read_only=True, allow_null=True)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        report = object_reader.ProblemReport()
        values: dict[str, Any] = {}
        if (data.get("user") is None) == (data.get("group") is None):
            report.add("user", "required", "name either a user or a group")
            data = {name: value for name, value in data.items() if name not in {"user", "group"}}
        with report.collect():
            values = super().to_internal_value(data)
        report.raise_any()
        return values


class MembershipFilter(scoped.ScopedFilterSet):
    user = filters.Filter(
        select=lambda rows, user: rows.filter(Q(user__username=user) | Q(subject_user=user)),
        help_text="By name.",
    )
    group = filters.Filter(
        select=lambda rows, group: rows.filter(Q(group__name=group) | Q(subject_group=group)),
        help_text="By name.",
    )
    namespace = filters.Filter(
        select=lambda rows, name: rows.filter(namespaces__contains=[name]),
        help_text="One of its namespaces.",
    )
    source = filters.choice(
        *MembershipSource.values, help_text="local, or cluster: made by a RoleBinding."
    )


class Memberships(generics.ModelViewSet):
    """Memberships: all for administrators, their own for other users."""

    needs = {
        "GET": (),
        "POST": ("claims.add_membership",),
        "PATCH": ("claims.change_membership",),
        "DELETE": ("claims.delete_membership",),
    }
    queryset = AnyMembership.objects.prefetch_related("cluster", "user", "group")
    serializer_class = MembershipSerializer
    change_serializer_class = MembershipChangeSerializer
    filterset_class = MembershipFilter
    lookup_url_kwarg = "membership_id"
    row_text = "A membership."

    def get_queryset(self) -> QuerySet[AnyMembership]:
        """Return all effective memberships, or those of the user without permission to view all."""
        rows: QuerySet[AnyMembership] = super().get_queryset()
        rows = rows.filter(
            Q(source=MembershipSource.LOCAL) | Q(cluster_role__in=cluster_owners.roles())
        )
        user = self.request.user
        if user.has_perm("claims.view_membership"):
            return rows
        local, clusters = namespaces.of_user(user), cluster_owners.of_user(user)
        return rows.filter(Q(pk__in=local.values("pk")) | Q(pk__in=clusters.values("pk")))

    def get_local(self, membership: AnyMembership) -> Membership:
        """Return a membership that was added here; raise ClusterDecides for one of a RoleBinding."""
        if membership.source == MembershipSource.CLUSTER:
            raise errors.ClusterDecides(
                f"The cluster {membership.cluster} makes this VM owner by its RoleBinding"
                f" {membership.namespaces[0]}/{membership.binding}: change or delete that there."
            )
        return Membership.objects.get(pk=membership.pk)

    @schema.example(
        {"user": "vera", "cluster": "prod", "namespaces": ["shop"], "role": "vm-owner"}, "one user"
    )
    def perform_create(self, values: dict[str, Any]) -> AnyMembership:
        """Add a VM owner."""
        membership = memberships.create(
            values["cluster.name"], values["namespaces"], author=self.author(),
            user=values.get("user_name"), group=values.get("group_name") or "",
        )  # fmt: skip
        return AnyMembership.objects.get(pk=membership.pk)

    def perform_update(self, row: AnyMembership, values: dict[str, Any]) -> AnyMembership:
        """Change the namespaces of a membership."""
        membership = self.get_local(row)
        if "namespaces" in values:
            memberships.change(membership, values["namespaces"], author=self.author())
        return AnyMembership.objects.get(pk=membership.pk)

    def perform_destroy(self, row: AnyMembership) -> None:
        """Revoke a membership."""
        memberships.delete(self.get_local(row), author=self.author())
