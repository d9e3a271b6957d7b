"""Network containers: list, page, forms to add and edit, deletion."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.admin.plan import plan
from pools.core import addresses
from pools.models import AddressSpace, Container
from pools.platform import events
from pools.platform.admin import (
    attributes,
    columns,
    display,
    filters,
    forms as fields,
    lists,
    objects,
    pages,
    row_forms,
)
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.register import overlaps
from pools.register.plan import containers


class ContainerForm(attributes.AttributeFields, cluster_fields.NewCidrsForm, row_forms.ObjectForm):
    attributed = Container
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

    class Meta:
        model = Container
        fields = ("space", "cidr", "name", "description")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["space"].disabled = self.row is not None

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        return {**values, **{name: values.get(name) or "" for name in ("name", "description")}}

    def new_cidrs(self) -> list[addresses.Network]:
        cidr, space = self.cleaned_data["cidr"], self.cleaned_data["space"]
        if space is None or (self.row and self.row.cidr == cidr):
            return []  # the CIDRs of the fleet are all in its own
        return [cidr]

    def owner(self) -> overlaps.NetworkOwner:
        return overlaps.owner_of_container(self.cleaned_data["space"])


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


BULK = attributes.bulk_changes(
    Container,
    lambda row, values, author: containers.change(row.pk, values, author=author),
    rows=lambda _request: Container.objects.select_related("space__cluster"),
)


@admin.register(Container)
class ContainerAdmin(attributes.AttributedList[Container], objects.ObjectAdmin[Container]):
    form = ContainerForm
    default_field = "cidr"
    intro = _("A network container groups the CIDRs inside it. No addresses are allocated from it.")
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
    list_pages = (BULK.page(),)
    actions = (BULK.action(),)
    row_pages = (
        Page("change", _page),
        lists.history(lambda row: {"q": str(row.cidr)}, "pools.view_event"),
    )

    def save_row(self, row: Container | None, form: Any, author: events.Author) -> Container:
        if row is None:
            return containers.create(author=author, **form.cleaned_data)
        values = {name: form.cleaned_data[name] for name in form.cleaned_data if name != "space"}
        return containers.change(row.pk, values, author=author, version=form.check_version)

    def delete_model(self, request: HttpRequest, obj: Container) -> None:
        containers.delete(obj.pk, author=pages.author(request))

    def deletion_effects(self, row: Container) -> list[str]:
        return [gettext("The containers, pools and prefixes inside it stay as they are.")]
