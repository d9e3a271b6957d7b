"""VM owners: the users and groups that have access to the VMs of some namespaces."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.access import memberships
from claims.admin import scoped
from claims.models import Membership
from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, errors, holders
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields

LIST = "admin:claims_membership_changelist"


def _parse_namespaces(text: str) -> list[str]:
    return memberships.parse_namespaces(text.replace(",", " ").split(), "")


def _parse_group(text: str) -> str:
    name = text.strip(addresses.BLANKS)
    return holders.parse_identifier(name, max_length=memberships.MAX_GROUP_LENGTH)


class NamespacesForm(forms.Form):
    namespaces = fields.ParsedField(
        _parse_namespaces,
        widget=fields.lines(4, placeholder="shop"),
        help_text=_("One per line, or separated by commas."),
    )


class MembershipForm(NamespacesForm):
    user = forms.ModelChoiceField(
        get_user_model()._default_manager.order_by("username"),
        required=False,
        widget=fields.select(),
    )
    group = fields.ParsedField(
        _parse_group,
        required=False,
        widget=fields.text(list="groups"),
        help_text=_(
            "Instead of a user: all members of this group, as your identity provider or"
            " cluster names it. The group is created if it does not exist."
        ),
    )
    cluster = cluster_fields.cluster_field()
    field_order = ("user", "group", "cluster", "namespaces")

    def clean(self) -> dict[str, Any]:
        cleaned_data = self.cleaned_data
        if "group" not in self.errors and bool(cleaned_data.get("user")) == bool(
            cleaned_data.get("group")
        ):
            self.add_error("user", gettext("Choose either a user or a group."))
        return cleaned_data


class MembershipClusterFilter(scoped.ScopedClusterFilter):
    """Offers all clusters, because only administrators see memberships."""


@admin.register(Membership)
class MembershipAdmin(lists.ReadOnlyAdmin[Membership]):
    list_display = ("shown_owner", "shown_role", "shown_cluster", "shown_namespaces", "shown_since")
    list_display_links = None
    list_filter = (MembershipClusterFilter,)
    search_fields = ("user__username", "group__name", "namespaces")
    search_help_text = _("User, group or namespace")
    exported = ("id", "user", "group", "cluster.name", "namespaces", "role", "created_at")
    ordering = ("cluster__name", "user__username", "group__name")
    sortable_by = ()
    list_before_template = "cadastre/memberships_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "group", "cluster")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("claims.add_membership")

    @admin.display(description=_("user or group"))
    def shown_owner(self, membership: Membership) -> SafeString:
        return display.row_link(membership, _owner_name(membership))

    @admin.display(description=_("role"))
    def shown_role(self, membership: Membership) -> str:
        return str(membership.get_role_display())

    @admin.display(description=_("cluster"))
    def shown_cluster(self, membership: Membership) -> SafeString:
        return display.row_link(membership.cluster)

    @admin.display(description=_("namespaces"))
    def shown_namespaces(self, membership: Membership) -> str:
        return ", ".join(membership.namespaces)

    @admin.display(description=_("since"))
    def shown_since(self, membership: Membership) -> SafeString:
        return display.timestamp(membership.created_at)

    # --- pages ------------------------------------------------------------------------------------

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        pages.require(request, "claims.add_membership")
        form = MembershipForm(request.POST or None, initial={"user": request.GET.get("user")})
        if request.method == "POST" and form.is_valid():
            cleaned_data = form.cleaned_data
            try:
                membership = memberships.create(
                    cleaned_data["cluster"],
                    cleaned_data["namespaces"],
                    author=pages.author(request),
                    user=cleaned_data["user"],
                    group=cleaned_data["group"] or "",
                )
            except errors.IpamError as error:
                pages.add_errors(form, error)
            else:
                messages.success(
                    request,
                    (
                        gettext("The VM owner %(owner)s was added.")
                        % {"owner": _owner_name(membership)}
                    ),
                )
                return HttpResponseRedirect(reverse(LIST))
        return _page(request, gettext("Add VM owner"), form)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_membership")
        row = _get_membership(object_id)
        text = "\n".join(row.namespaces)
        form = NamespacesForm(request.POST or None, initial={"namespaces": text})
        if request.method == "POST":
            pages.require(request, "claims.change_membership")
            if form.is_valid():
                memberships.change(
                    row, form.cleaned_data["namespaces"], author=pages.author(request)
                )
                messages.success(
                    request,
                    gettext("The namespaces of %(owner)s were changed.")
                    % {"owner": _owner_name(row)},
                )
                return HttpResponseRedirect(reverse(LIST))
        return _page(
            request,
            (
                gettext("%(owner)s in %(cluster)s")
                % {"owner": _owner_name(row), "cluster": row.cluster}
            ),
            form,
            row=row,
        )

    def delete_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.delete_membership")
        row = _get_membership(object_id)
        if request.method == "POST":
            memberships.delete(row, author=pages.author(request))
            messages.success(
                request,
                (
                    gettext("The access of %(owner)s to %(cluster)s was revoked.")
                    % {"owner": _owner_name(row), "cluster": row.cluster}
                ),
            )
            return HttpResponseRedirect(reverse(LIST))
        return _page(
            request,
            (gettext("Revoke the access of %(owner)s?") % {"owner": _owner_name(row)}),
            row=row,
        )

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        pages.require(request, "claims.view_membership")
        query = {"q": str(_get_membership(object_id).user or ""), "type": "membership"}
        return HttpResponseRedirect(reverse("admin:pools_event_changelist", query=query))


def _get_membership(object_id: str) -> Membership:
    rows = Membership.objects.select_related("user", "group", "cluster")
    row = rows.filter(pk=lists.parse_id(object_id)).first()
    if row is None:
        raise Http404(gettext("There is no such object."))
    return row


def _owner_name(membership: Membership) -> str:
    return (
        str(membership.user)
        if membership.user
        else (gettext("group %(group)s") % {"group": membership.group})
    )


def _page(
    request: HttpRequest, title: str, form: forms.Form | None = None, row: Membership | None = None
) -> HttpResponse:
    return pages.page(
        request,
        "membership.html",
        title=title,
        opts=Membership._meta,
        original=row,
        row=row,
        form=form,
        groups=Group.objects.order_by("name") if row is None else (),
        call=f"memberships/{row.pk}/" if row else "",
    )
