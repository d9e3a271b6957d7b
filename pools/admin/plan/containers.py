"""Network containers: list, page, forms to add and edit, deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.plan import plan
from pools.core import errors
from pools.models import AddressSpace, Container
from pools.platform import events
from pools.platform.admin import (
    attributes,
    bulk_edit,
    columns,
    display,
    filters,
    lists,
    pages,
)
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.attributes import values as attribute_values
from pools.register import overlaps
from pools.register.plan import containers


class ContainerForm(attributes.AttributeFields):
    attributed = Container
    takes_cidrs = True
    space = cluster_fields.space_field(
        empty_label=plan.FLEET,
        help_text=_(
            "The fleet, which has the CIDRs of all clusters, or one cluster or isolated VM network."
        ),
    )
    cidr = fields.cidr_field(
        label="CIDR",
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="10.0.0.0/8"), 16),
    )
    name = fields.reason_field(label=_("Name"), required=False, help_text="")
    description = fields.description_field()


def _values(form: forms.Form) -> dict[str, Any]:
    texts = {name: form.cleaned_data[name] or "" for name in ("name", "description")}
    return {**form.cleaned_data, **texts}


def _field_of_problem(problem: errors.FieldProblem) -> str:
    return problem.field or "cidr"


def _overlaps_accepted(form: ContainerForm, container: Container | None = None) -> bool:
    """Return False if a new CIDR has addresses of another address space; those of the fleet are all in its own."""
    cidr = form.cleaned_data["cidr"]
    space = container.space if container else form.cleaned_data["space"]
    if space is None or (container and container.cidr == cidr):
        return True
    return cluster_fields.overlaps_accepted(form, [cidr], overlaps.owner_of_container(space))


def _add(request: HttpRequest) -> HttpResponse:
    initial = {name: request.GET[name] for name in ("space", "cidr") if name in request.GET}
    form = ContainerForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid() and _overlaps_accepted(form):
        of_container, values = attribute_values.split(_values(form))
        with pages.errors_at_field(form, _field_of_problem):
            container = containers.create(
                author=pages.author(request), attributes=of_container, **values
            )
            return pages.done(
                request,
                gettext("The network container %(container)s was added.")
                % {"container": container},
                container,
            )
    return pages.form_page(
        request,
        Container,
        form,
        title=gettext("Add network container"),
        intro=gettext(
            "A network container groups the CIDRs inside it. No addresses are allocated from it."
        ),
    )


def _shown_values(container: Container) -> dict[str, Any]:
    names = ("space", "cidr", "name", "description")
    return {name: getattr(container, name) for name in names} | attributes.initial(container)


def _edit(request: HttpRequest, container: Container) -> HttpResponse:
    form = ContainerForm(request.POST or None)
    form.show_row(container, _shown_values)
    form.fields["space"].disabled = True
    if request.method == "POST" and form.is_valid() and _overlaps_accepted(form, container):
        values = _values(form)
        del values["space"]
        with pages.errors_at_field(form, _field_of_problem):
            changed = containers.change(
                container.pk, values, author=pages.author(request), version=form.check_version
            )
            return pages.done(
                request,
                gettext("The network container %(container)s was changed.")
                % {"container": changed},
                container,
            )
    return pages.form_page(
        request, container, form, title=gettext("Edit %(container)s") % {"container": container}
    )


def _delete(request: HttpRequest, container: Container) -> HttpResponseBase:
    return pages.deletion(
        request,
        container,
        lambda: containers.delete(container.pk, author=pages.author(request)),
        title=gettext("Delete the network container %(container)s?") % {"container": container},
        effects=[gettext("The containers, pools and prefixes inside it stay as they are.")],
        deleted=gettext("The network container %(container)s was deleted.")
        % {"container": container},
    )


def _page(request: HttpRequest, container: Container) -> HttpResponse:
    return pages.page(
        request,
        "container.html",
        container,
        title=str(container),
        call=f"containers/{container.pk}/",
    )


def _space_choices(_request: HttpRequest) -> Iterable[tuple[int, str]]:
    used = Container.objects.exclude(space=None).values("space")
    for space in AddressSpace.objects.filter(pk__in=used).select_related("cluster"):
        yield space.pk, str(space)


class ContainerBulkForm(bulk_edit.BulkForm, attributes.BulkAttributeFields):
    attributed = Container
    clearable = frozenset({"description"})
    description = fields.description_field()


def _change(container: Container, values: Mapping[str, Any], author: events.Author) -> Container:
    changes = attributes.bulk_values(container, values)
    return containers.change(container.pk, changes, author=author)


BULK = bulk_edit.BulkEdit(
    model=Container,
    permissions=("pools.change_container",),
    rows=lambda _request: Container.objects.select_related("space__cluster"),
    form=ContainerBulkForm,
    change=_change,
    show=attributes.show_value,
)


@admin.register(Container)
class ContainerAdmin(attributes.AttributedList[Container]):
    list_display = (
        Column("cidr", "CIDR", lambda row: display.row_link(row, str(row.cidr)), ordering="cidr"),
        columns.text("name", _("name"), ordering="name"),
        Column("space", _("address space"), lambda row: str(row.space or plan.FLEET)),
        columns.text("description", _("description")),
    )
    more_columns = (columns.timestamp("created_at", _("created"), ordering="created_at"),)
    list_filter = (
        filters.by_condition(_("address space"), "fleet", {"fleet": (plan.FLEET, Q(space=None))}),
        filters.by_id(_("cluster or network"), "space", _space_choices, "space_id"),
    )
    exported = ("id", "space", "cidr", "name", "description", "created_at")
    search_help_text = _("Name, address or CIDR")
    ordering = ("cidr", "id")
    list_select_related = ("space__cluster",)
    list_before_template = "cadastre/containers_intro.html"
    empty_text = _(
        "No network containers yet. They group the CIDRs of the address plan, for example by site."
    )
    list_pages = (Page("add", _add, "pools.add_container"), BULK.page())
    actions = (BULK.action(),)
    row_pages = (
        Page("change", _page),
        Page("edit", _edit, "pools.change_container"),
        Page("delete", _delete, "pools.delete_container"),
        lists.history(lambda row: {"q": str(row.cidr)}, "pools.view_event"),
    )
