"""The page of an import: its effect, its rows with their reasons and corrections, and what imports say about an address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from pools import tasks
from pools.core.register_import import attributes
from pools.models import Cluster, PoolCIDR, RegisterImport, RegisterRow
from pools.models.imports import ImportStatus, RegisterTarget, RowStatus
from pools.platform.admin import display, import_texts, imports, pages
from pools.register import overlaps
from pools.register.imports import drafts, rows as import_rows


class RegisterImportPages(imports.ImportPages[RegisterImport]):
    kind = drafts.IMPORTS
    notify = staticmethod(tasks.notify_import_worker)
    template = "import_register.html"
    endpoint = "imports"
    what = _("Register")
    formats = {
        "netbox": _("NetBox, CSV"),
        "netbox-api": _("NetBox, REST API"),
        "phpipam": _("phpIPAM"),
        "infoblox": _("Infoblox, CSV"),
        "spreadsheet": _("spreadsheet"),
    }

    def lines(self, row: RegisterImport, rows: list[RegisterRow]) -> dict[str, Any]:
        pools = _registered_pools(rows)
        clusters = Cluster.objects.in_bulk({line.cluster_id for line in rows if line.cluster_id})
        return {
            "rows": [
                {
                    **_line(line, pools),
                    "cluster": clusters.get(line.cluster_id or 0),
                    "overlaps": list(_new_overlaps(line, clusters)),
                }
                for line in rows
            ]
        }

    def undo_effects(self, row: RegisterImport) -> list[str]:
        text = gettext(
            "The import cannot be undone while somebody else holds addresses in its pools."
        )
        if not (row.netbox_source and row.netbox_source.every_minutes):
            return [text]
        mirrored = gettext(
            "The next run of the mirror does the same again: switch off its schedule first."
        )
        return [mirrored, text]

    def inputs(self, row: RegisterRow) -> Iterator[imports.Input]:
        return iter(()) if import_rows.follows(row) else _inputs(row)

    def context(self, request: HttpRequest, row: RegisterImport) -> dict[str, Any]:
        may_change = self.kind.permits(request.user, "change")
        committed = row.status == ImportStatus.COMMITTED and not row.undo_wanted
        return {"may_confirm": may_change and committed and row.counts.get(RowStatus.VANISHED, 0)}

    def view(self, request: HttpRequest, row: RegisterImport) -> HttpResponse:
        if request.method != "POST" and request.GET.get("ask") == "release":
            self.require_change(request)
            return self._release_page(request, row)
        return super().view(request, row)

    def _release_page(self, request: HttpRequest, row: RegisterImport) -> HttpResponse:
        number = row.counts.get(RowStatus.VANISHED, 0)
        text = ngettext(
            "%(number)s object that the source has no more: an address goes into the cooldown of its pool,"
            " a reserved range, a container or an unused pool is removed.",
            "%(number)s objects that the source has no more: addresses go into the cooldown of their pool,"
            " reserved ranges, containers and unused pools are removed.",
            number,
        )
        return pages.confirmation(
            request,
            row,
            title=gettext("Release all that is gone from the source?"),
            effects=[
                text % {"number": display.digits(number)},
                gettext(
                    "The undo of the import restores them, unless somebody else has them then."
                ),
            ],
            button=gettext("Release all"),
            action="release",
        )

    def actions(self) -> dict[str, Callable[[HttpRequest, RegisterImport], HttpResponse | None]]:
        return super().actions() | {"release": self._confirm, "keep": self._confirm}

    def _confirm(self, request: HttpRequest, row: RegisterImport) -> None:
        """Release or keep one row that the source has no more, or all."""
        numbers = [imports.row_number(request)] if request.POST.get("row") else None
        keep = request.POST["action"] == "keep"
        author = pages.author(request)
        changed = drafts.confirm_vanished(row.pk, numbers, keep=keep, author=author)
        self.report(request, gettext("Confirmed: %(counts)s."), changed)

    def corrections(self, sent: Mapping[str, str]) -> dict[str, Any]:
        return {
            name: text[: attributes.LONGEST]
            for name, text in sent.items()
            if name in {*drafts.CORRECTED, "alike"} or attributes.is_attribute(name)
        }


PAGES = RegisterImportPages()

_REGISTERED = (RowStatus.CHANGED, RowStatus.UNCHANGED)
_KEYS = {"prefix": ("prefix", "mask"), "address": ("address",), "range": ("first", "last")}


def _registered_pools(rows: list[RegisterRow]) -> dict[int, str]:
    """Return the pools of the rows whose CIDR is registered, by the row: their names need not be those of the import."""
    ids = {row.number: row.pool_cidr_id or 0 for row in rows if row.status in _REGISTERED}
    names = dict(PoolCIDR.objects.filter(pk__in=ids.values()).values_list("pk", "pool__name"))
    return {number: names[cidr_id] for number, cidr_id in ids.items() if cidr_id in names}


def _line(row: RegisterRow, pools: Mapping[int, str]) -> dict[str, Any]:
    keys = _KEYS[row.kind]
    place = "-".join(filter(None, (row.texts.get(name, "") for name in keys if name != "mask")))
    shown = place if row.first is None else _place(row)
    found = str(row.first) if row.kind == "range" else shown
    return {
        "row": row,
        "pool": pools.get(row.number, row.pool_name),
        "link": reverse("admin:find", query={"q": found}) if row.written else "",
        "place": shown,
        "target": RegisterTarget(row.target).label if row.target else "",
        "space": row.space_name,
        "reasons": import_texts.reasons(row),
        "candidates": drafts.candidates(row),
        "chosen_field": drafts.chosen_field(row),
        "attributes": list(_attributes(row)),
        "differences": list(_differences(row)),
    }


def _new_overlaps(
    row: RegisterRow, clusters: Mapping[int, Cluster]
) -> Iterator[tuple[IPv4Network | IPv6Network, overlaps.NetworkOwner]]:
    """Yield what the prefix of a row, that nothing was written of yet, overlaps in the register."""
    cluster = clusters.get(row.cluster_id or 0)
    if row.status != RowStatus.NEW or row.kind != "prefix" or row.written or cluster is None:
        return
    owner = overlaps.owner_of_new_network(cluster, row.space_name)
    yield from overlaps.find_new_overlaps(ip_network(row.cidr), owner)


def _place(row: RegisterRow) -> str:
    if row.kind == "prefix":
        return str(row.cidr)
    return str(row.first) if row.first == row.last else f"{row.first}-{row.last}"


_LABELS: dict[str, StrOrPromise] = {
    "prefix": _("Prefix"),
    "mask": _("Mask"),
    "address": _("Address"),
    "first": _("First address"),
    "last": _("Last address"),
    "pool": _("Pool"),
    "holder": _("Holder"),
    "status": _("Status"),
    "vrf": "VRF",
    "cluster": _("Cluster"),
    "tenant": _("Tenant"),
    "description": _("Description"),
    "tags": _("Tags"),
}


_DETAILS: dict[str, StrOrPromise] = {
    "tags": _("Tags"),
    "unset": _("Custom fields without a place here"),
}


def _inputs(row: RegisterRow) -> Iterator[imports.Input]:
    object_field = "pool" if row.kind == "prefix" else "holder"
    shared = ("status", "vrf", "cluster", "tenant", "description", "tags")
    custom = filter(attributes.is_custom, row.texts)
    for name in (*_KEYS[row.kind], object_field, *shared, *custom):
        label = _LABELS.get(name) or name.removeprefix(attributes.PREFIX)
        yield name, label, row.texts.get(name, "")


def _attributes(row: RegisterRow) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of the tags and custom fields of a row; those of a changed one are among its differences."""
    if row.before is None:
        yield from attribute_facts(row.details)


def _differences(row: RegisterRow) -> Iterator[tuple[StrOrPromise, str, str]]:
    """Yield (label, registered value, new value) of each value that a row changes."""
    before = row.before
    if before is None:
        return
    details = before.get("details") or {}
    names = sorted({*details, *row.details})
    pairs: list[tuple[StrOrPromise, str, str]] = [
        (_("Description"), before.get("description") or "", row.description),
        *(
            (_DETAILS.get(name, name), details.get(name, ""), row.details.get(name, ""))
            for name in names
        ),
    ]
    if "org" in before:
        pairs.insert(0, (_("Organization"), before["org"] or "", row.org))
    yield from (pair for pair in pairs if pair[1] != pair[2])


# --- what an imported register says about an address ----------------------------------------------

# Of the details that an import keeps beside an object (core/register_import/parsing.py).
_KEPT: dict[str, StrOrPromise] = {
    "status": _("Status"),
    "role": _("Role"),
    "dns_name": _("DNS name"),
    "tenant": _("Tenant"),
    "owner": _("Owner"),
    "vrf": "VRF",
    "site": _("Site"),
    "vlan": "VLAN",
    "mac": _("MAC address"),
    "interface": _("Interface"),
    "device": _("Device"),
    "note": _("Note"),
}


def imported_facts(record: Mapping[str, Any] | None) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of what an imported register says about an address."""
    if record is None:
        return
    if record["description"]:
        yield _("Description"), record["description"]
    yield from (
        (label, record["details"][name])
        for name, label in _KEPT.items()
        if name in record["details"]
    )
    yield from attribute_facts(record["details"])


def attribute_facts(details: Mapping[str, str]) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of the tags and custom fields of an imported register."""
    if tags := details.get("tags"):
        yield _("Tags"), tags.replace(",", ", ")
    for name in filter(attributes.is_custom, details):
        yield name.removeprefix(attributes.PREFIX), details[name]
