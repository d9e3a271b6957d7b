"""The page of an import of another register: what each row becomes, and what the source of a mirror has no more."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from claims.admin.imports import page
from pools.admin.pools.blocks import attribute_facts
from pools.core.register_import import attributes
from pools.models import Cluster, PoolCIDR, RegisterRow
from pools.models.imports import ImportStatus, RegisterTarget, RowStatus
from pools.platform.admin import display, import_texts, pages
from pools.register import overlaps
from pools.register.imports import drafts, rows as import_rows


class RegisterImportPage(page.ImportPage):
    engine = drafts.IMPORTS
    template = "import_register.html"
    what = _("Register")
    formats = {
        "netbox": _("NetBox, CSV"),
        "netbox-api": _("NetBox, REST API"),
        "phpipam": _("phpIPAM"),
        "infoblox": _("Infoblox, CSV"),
        "spreadsheet": _("spreadsheet"),
    }

    undo_text = _("The import cannot be undone while somebody else holds addresses in its pools.")

    def lines(self, rows: list[RegisterRow]) -> dict[str, Any]:
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

    def undo_effects(self) -> list[str]:
        source = self.row.netbox_source
        if not (source and source.every_minutes):
            return []
        return [
            gettext(
                "The next run of the mirror does the same again: switch off its schedule first."
            )
        ]

    def inputs(self, row: RegisterRow) -> Iterator[page.Input]:
        return iter(()) if import_rows.follows(row) else _inputs(row)

    def context(self) -> dict[str, Any]:
        row = self.row
        committed = row.status == ImportStatus.COMMITTED and not row.undo_wanted
        vanished = row.counts.get(RowStatus.VANISHED, 0)
        return {"may_confirm": self.may_change and committed and vanished}

    def answer(self) -> HttpResponse:
        if self.request.method != "POST" and self.request.GET.get("ask") == "release":
            self.require_change()
            return self._release_page()
        return super().answer()

    def _release_page(self) -> HttpResponse:
        number = self.row.counts.get(RowStatus.VANISHED, 0)
        text = ngettext(
            "%(number)s object that the source has no more: an address goes into the cooldown of its pool,"
            " a reserved range, a container or an unused pool is removed.",
            "%(number)s objects that the source has no more: addresses go into the cooldown of their pool,"
            " reserved ranges, containers and unused pools are removed.",
            number,
        )
        return pages.confirmation(
            self.request,
            self.row,
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

    def post_release(self) -> None:
        """Release or keep one row that the source has no more, or all."""
        numbers = [self.row_number()] if self.request.POST.get("row") else None
        keep, author = self.request.POST["action"] == "keep", self.actor["author"]
        changed = drafts.confirm_vanished(self.row.pk, numbers, keep=keep, author=author)
        self.report(gettext("Confirmed: %(counts)s."), changed)

    post_keep = post_release

    def corrections(self, sent: Mapping[str, str]) -> dict[str, Any]:
        return {
            name: text[: attributes.LONGEST]
            for name, text in sent.items()
            if name in {*drafts.CORRECTED, "alike"} or attributes.is_attribute(name)
        }


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


def _inputs(row: RegisterRow) -> Iterator[page.Input]:
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
