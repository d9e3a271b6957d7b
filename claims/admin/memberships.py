"""VM owners: the users and groups that have access to the VMs of some namespaces, by hand or by RoleBindings."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import cluster_owners, memberships, namespaces
from claims.admin import scoped
from claims.models import NAD, ClusterOwner, Membership
from claims.models.cluster_owners import SubjectKind
from pools.admin import access, users
from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, errors, holders
from pools.models import Cluster
from pools.platform.admin import (
    columns,
    display,
    forms as fields,
    lists,
    objects,
    pages,
    related,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.events import Author

LIST = "admin:claims_membership_changelist"


_GROUPS = related.RelatedRows(lambda _request: Group.objects.all(), ("name",))
_OFFERED_GROUPS = related.offer("groups", "claims.view_membership", _GROUPS)


def _parse_group(text: str) -> str:
    name = text.strip(addresses.BLANKS)
    return holders.parse_identifier(name, max_length=memberships.MAX_GROUP_LENGTH)


def _beyond(user: Any) -> access.Beyond | None:
    """Return who owns VMs, for somebody who has not all rights of VM owners in every namespace."""
    if memberships.owns_every_namespace(user):
        return None
    bindings = cluster_owners.in_effect()
    named = {kind: bindings.filter(subject_kind=kind).values("subject") for kind in SubjectKind}
    members = cluster_owners.members_in_effect().values("username")
    is_named = Q(username__in=named[SubjectKind.USER]) | Q(username__in=members)
    of_groups = Q(memberships__isnull=False) | Q(name__in=named[SubjectKind.GROUP])
    groups = Group.objects.filter(of_groups)
    return access.Beyond(
        users=Q(memberships__isnull=False) | Q(groups__in=groups) | is_named,
        groups=of_groups,
        is_username=lambda name: (
            named[SubjectKind.USER].filter(subject=name).exists()
            or members.filter(username=name).exists()
        ),
        is_group_name=lambda name: named[SubjectKind.GROUP].filter(subject=name).exists(),
    )


access.BEYOND.append(_beyond)


def _names(user: Any) -> list[str]:
    return sorted(
        f"{membership.cluster}/{namespace}"
        for membership in user.memberships.all()
        for namespace in membership.namespaces
    )


def _described(user: Any) -> list[str]:
    """Return the namespaces that a user sees, by memberships and by RoleBindings."""
    scope = namespaces.scope(user)
    if scope.everything:
        return [gettext("every namespace")]
    names = dict(Cluster.objects.filter(pk__in=scope.namespaces).values_list("pk", "name"))
    return sorted(
        f"{names[cluster_id]}/{namespace}"
        for cluster_id, owned in scope.namespaces.items()
        for namespace in owned
    )


def _parse_namespace(text: str) -> tuple[Cluster, str]:
    """Return the cluster and the namespace of `prod/shop`, or of `shop` where there is one cluster."""
    name, slash, namespace = text.rpartition("/")
    clusters = list((Cluster.objects.filter(name=name) if slash else Cluster.objects.all())[:2])
    if len(clusters) != 1:
        message = "must be cluster/namespace, with the name of a cluster"
        raise errors.InvalidInput.for_field("namespaces", "not_found", message, text)
    return clusters[0], holders.parse_label(namespace, field="namespaces")


def _save_namespaces(user: Any, pairs: Iterable[tuple[Cluster, str]], author: Author) -> None:
    by_cluster: dict[Cluster, list[str]] = {}
    for cluster, namespace in pairs:
        by_cluster.setdefault(cluster, []).append(namespace)
    memberships.set_namespaces(user, by_cluster, author=author)


_PARTS = ("network__cluster__name", "namespace")
_NAMESPACES = related.RelatedRows(
    lambda request: scoped.rows(request, NAD).distinct(*_PARTS), _PARTS
)
access.OWNERSHIPS.append(
    access.Ownership(
        group=memberships.OWNERS,
        offered=related.offer("namespaces-of-clusters", "claims.add_membership", _NAMESPACES),
        permissions=tuple(f"claims.{verb}_membership" for verb in ("add", "change", "delete")),
        related="memberships__cluster",
        names=_names,
        described=_described,
        parse=_parse_namespace,
        save=_save_namespaces,
    )
)


class MembershipForm(row_forms.ObjectForm):
    user = related.RelatedField(
        users.OFFERED_USERS, get_user_model()._default_manager.order_by("username"), required=False
    )
    group = fields.ParsedField(
        _parse_group,
        required=False,
        widget=related.name_widget(_OFFERED_GROUPS),
        help_text=_(
            "Instead of a user: all members of this group, as your identity provider or"
            " cluster names it. The group is created if it does not exist."
        ),
    )
    cluster = cluster_fields.cluster_field()
    namespaces = fields.ParsedField(
        lambda text: memberships.parse_namespaces(text.replace(",", " ").split(), ""),
        widget=fields.lines(4, placeholder="shop"),
        help_text=_("One per line, or separated by commas."),
    )

    class Meta:
        model = Membership
        fields = ("user", "group", "cluster", "namespaces")

    def shown_values(self, row: Membership) -> dict[str, Any]:
        return {"namespaces": "\n".join(row.namespaces)}

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        names = [bool(values.get(name)) for name in ("user", "group")]
        if self.row is None and "group" not in self.errors and sum(names) != 1:
            self.add_error("user", gettext("Choose either a user or a group."))
        return values


def _owner_name(membership: Membership) -> str:
    return (
        str(membership.user)
        if membership.user
        else (gettext("group %(group)s") % {"group": membership.group})
    )


@admin.register(Membership)
class MembershipAdmin(objects.ObjectAdmin[Membership]):
    form = MembershipForm
    fixed_fields = ("user", "group", "cluster")
    form_template = "membership.html"
    add_title = _("Add VM owner")
    deletion_texts = {
        "title": _("Revoke the access of %(name)s?"),
        "deleted": _("The access of %(name)s was revoked."),
        "button": _("Revoke"),
    }
    list_display = (
        Column("owner", _("user or group"), lambda row: display.row_link(row, _owner_name(row))),
        columns.label("role", _("role")),
        columns.related("cluster", _("cluster")),
        Column("namespaces", _("namespaces"), lambda row: ", ".join(row.namespaces)),
        columns.timestamp("created_at", _("since")),
    )
    list_filter = (scoped.cluster_filter(),)
    search_help_text = _("User, group or namespace")
    exported = ("id", "user", "group", "cluster.name", "namespaces", "role", "created_at")
    ordering = ("cluster__name", "user__username", "group__name")
    list_select_related = ("user", "group", "cluster")
    list_before_template = "cadastre/memberships_intro.html"
    row_pages = (
        lists.history(
            lambda row: {"q": str(row.user or ""), "type": "membership"}, "claims.view_membership"
        ),
    )

    def form_context(self, request: HttpRequest, row: Membership | None) -> dict[str, Any]:
        if row is None:
            return {"button": gettext("Add VM owner")}
        return {"title": str(row), "call": f"memberships/{row.pk}/"}

    def save_row(self, row: Membership | None, form: Any, author: Author) -> Membership:
        values = form.cleaned_data
        if row is None:
            return memberships.create(
                values["cluster"],
                values["namespaces"],
                author=author,
                user=values["user"],
                group=values["group"] or "",
            )
        version = form.check_version
        return memberships.change(row, values["namespaces"], author=author, version=version)

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        memberships.delete(obj, author=pages.author(request))

    def deletion_effects(self, row: Membership) -> list[str]:
        names = {"owner": _owner_name(row), "namespaces": ", ".join(row.namespaces)}
        return [
            gettext("%(owner)s loses access to %(namespaces)s in %(cluster)s.")
            % {**names, "cluster": row.cluster},
            gettext("VMs keep their addresses; API tokens lose the same permissions."),
        ]


def _owner(row: ClusterOwner) -> str:
    if row.subject_kind == SubjectKind.USER:
        return row.subject
    return gettext("group %(subject)s") % {"subject": row.subject}


@admin.register(ClusterOwner)
class ClusterOwnerAdmin(lists.ListAdmin[ClusterOwner]):
    list_display = (
        Column("owner", _("user or group"), _owner),
        columns.code("role", _("role of the cluster")),
        columns.related("connection.cluster", _("cluster")),
        "namespace",
        columns.text("binding", _("RoleBinding")),
        columns.timestamp("since", _("since")),
    )
    list_filter = (scoped.cluster_filter("connection__cluster_id"),)
    search_help_text = _("User, group, namespace or RoleBinding")
    exported = (
        "id",
        "subject_kind",
        "subject",
        "connection.cluster.name",
        "namespace",
        "role",
        "binding",
        "since",
    )
    ordering = ("connection__cluster__name", "namespace", "subject", "id")
    list_select_related = ("connection__cluster",)
    list_before_template = "cadastre/cluster_owners_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ClusterOwner]:
        return super().get_queryset(request).filter(role__in=cluster_owners.roles())

    def has_view_permission(self, request: HttpRequest, obj: ClusterOwner | None = None) -> bool:
        return request.user.has_perm("claims.view_membership")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def change_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied

    def history_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        raise PermissionDenied
