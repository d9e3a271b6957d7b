"""What pages of several kinds of objects show of VMs: links, duplicates, manifests, bars of time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_interface
from itertools import groupby
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.access import namespaces
from claims.address_index.duplicates import Duplicate, Occurrence
from claims.models import Entry, EntryEvent, IPAMClaim, IPAMClaimEvent, Network, Workload
from claims.models.networks import EntrySource
from claims.operations import history
from claims.workloads import vm_lookup
from pools.admin import time_bars
from pools.admin.time_bars import Segment, SegmentRow, TimeBar
from pools.core import errors
from pools.models import Block
from pools.platform import documents
from pools.platform.admin import display, pages
from pools.register.history import addresses

SOURCE_LABELS = {
    EntrySource.HAND.value: _("manual"),
    EntrySource.API.value: _("REST API"),
    EntrySource.CLUSTER.value: _("cluster's IPPool"),
    EntrySource.IMPORT.value: _("import"),
    EntrySource.ADOPTED.value: _("adopted workload"),
    EntrySource.REQUEST.value: _("VM owner's request"),
}
_LONG_NAME = 24  # characters; a longer name may wrap


def source_label(source: str) -> str:
    """Return the label of an entry's source."""
    return str(SOURCE_LABELS[source])


def vm_link(namespace: str, name: str, shown: str = "") -> SafeString:
    """Return a VM's name as a link to the search results of that VM; a short name does not wrap."""
    text = f"{namespace}/{name}" if namespace and name else name
    link = display.search_link(text, shown)
    if len(text) > _LONG_NAME:
        return link
    return format_html('<span class="cad-nowrap">{}</span>', link)


def claim_link(row: IPAMClaim, text: str) -> SafeString:
    """Return a link to a claim that wraps after the dots of its name."""
    parts = ((part,) for part in text.split("."))
    return display.row_link(row, format_html_join(SafeString(".<wbr>"), "{}", parts))


@dataclass(frozen=True)
class VMText:
    """A manifest, or the reason why there is none; one of them is empty."""

    text: str = ""
    why_not: str = ""


def manifest_text(
    network: Network,
    *,
    vm: str,
    namespace: str,
    mac: str | None,
    scope: namespaces.Scope,
    missing_vm_text: str,
) -> VMText:
    """Return the manifest of a VM as YAML, or the reason why it cannot be shown.

    `missing_vm_text` is the reason if the VM or its namespace is not known.
    """
    if not vm or not namespace:
        return VMText(why_not=missing_vm_text)
    try:
        manifest = vm_lookup.vm_manifest(network, vm=vm, namespace=namespace, mac=mac, scope=scope)
    except errors.IpamError as error:
        return VMText(why_not=pages.sentence(error.message))
    return VMText(text=documents.dump_yaml(manifest))


# --- duplicates, with links to all objects that use the same MAC or IP address ---


_MODELS: dict[str, type[Model]] = {
    "entry": Entry,
    "ipamclaim": IPAMClaim,
    "workload": Workload,
    "block": Block,
}
_TYPE_LABELS = {
    "ipamclaim": "IPAMClaim",
    "workload": _("running"),
    "vm_template": _("template of the VM"),
    "gateway": _("gateway"),
    "management": _("management port"),
    "infrastructure": _("infrastructure subnet"),
    "excluded": _("excluded subnet"),
    "join_subnet": _("join subnet"),
    "subnet_edge": _("first or last address of"),
    "out_of_range": _("beyond the first 65,536 addresses of"),
    "reserved_range": _("reserved range"),
    "reserved_subnet": _("reserved subnet"),
    "block": _("held by"),
    "other": _("another owner"),
}


def describe_occurrence(occurrence: Occurrence) -> str:
    """Return one user of an address as text: `MAC entry of shop/web in blue`, `gateway 10.0.0.1`."""
    if occurrence.type == "entry":
        owner = occurrence.vm or occurrence.mac
        if occurrence.namespace:
            owner = f"{occurrence.namespace}/{owner}"
        if occurrence.name:
            return gettext("MAC entry of %(owner)s in %(ippool)s") % {
                "owner": owner,
                "ippool": occurrence.name,
            }
        return gettext("MAC entry of %(owner)s") % {"owner": owner}
    name = f"{occurrence.namespace}/{occurrence.name}" if occurrence.namespace else occurrence.name
    return f"{_TYPE_LABELS.get(occurrence.type, occurrence.type)} {name}".strip()


def page_url(occurrence: Occurrence, network: Network | None = None) -> str:
    """Return the URL of the page that shows the object, or "" if no page does."""
    model = _MODELS.get(occurrence.type)
    if model is not None:
        if occurrence.id is None or not admin.site.is_registered(model):
            return ""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        return reverse(name, args=[occurrence.id])
    return display.url_of(network) if network is not None and occurrence.type != "other" else ""


def place_link(occurrence: Occurrence, network: Network | None = None) -> SafeString | str:
    place_url = page_url(occurrence, network)
    return (
        display.link(place_url, describe_occurrence(occurrence))
        if place_url
        else describe_occurrence(occurrence)
    )


def duplicate_badge(duplicates: Sequence[Duplicate], network: Network | None = None) -> SafeString:
    """Return the duplicates of a row as HTML lines; a note, such as a reserved subnet, is no conflict."""
    if not duplicates:
        return display.DASH
    lines = ((_duplicate_line(duplicate, network),) for duplicate in duplicates)
    return format_html('<span class="cad-stack">{}</span>', format_html_join("", "{}", lines))


def duplicate_chip(duplicates: Sequence[Duplicate], network: Network | None = None) -> SafeString:
    """Return the number of conflicts of a row in one line, which unfolds to them."""
    conflicts = sum(not duplicate.note for duplicate in duplicates)
    if not conflicts:
        return duplicate_badge(duplicates, network)
    label = ngettext("%(number)s conflict", "%(number)s conflicts", conflicts)
    return format_html(
        '<details class="cad-conflicts"><summary class="cad-state cad-state-conflict">'
        '<span aria-hidden="true">▲</span> {}</summary>{}</details>',
        label % {"number": conflicts},
        duplicate_badge(duplicates, network),
    )


def _duplicate_line(duplicate: Duplicate, network: Network | None) -> SafeString:
    occurrences = format_html_join(
        ", ", "{}", ((place_link(occurrence, network),) for occurrence in duplicate.occurrences)
    )
    if duplicate.note:
        return format_html(
            '<span><span class="cad-dim">{}</span> {}</span>',
            gettext("%(value)s lies in") % {"value": duplicate.value},
            occurrences,
        )
    label = gettext("duplicate %(kind)s") % {"kind": "MAC" if duplicate.kind == "mac" else "IP"}
    mark = display.badge("conflict", "▲", label, duplicate.value)
    return format_html("<span>{} {} {}</span>", mark, gettext("also"), occurrences)


def duplicate_lines(duplicates: Iterable[Duplicate], network: Network | None = None) -> SafeString:
    """Return the duplicates of what is typed in a form as HTML lines."""
    lines = []
    for duplicate in duplicates:
        style, text = "cad-warned", gettext("▲ %(value)s is a duplicate: also")
        if duplicate.note:
            style, text = "cad-help", gettext("%(value)s lies in")
        links = ((place_link(occurrence, network),) for occurrence in duplicate.occurrences)
        text %= {"value": duplicate.value}
        lines.append((style, text, format_html_join(", ", "{}", links)))
    return format_html_join("", '<p class="{}">{} {}</p>', lines)


def duplicate_texts(duplicates: Iterable[Duplicate]) -> list[str]:
    """Return one sentence for each duplicate that is a conflict, for messages after saving."""
    return [
        gettext("%(value)s is a duplicate: also %(occurrences)s.")
        % {
            "value": duplicate.value,
            "occurrences": ", ".join(map(describe_occurrence, duplicate.occurrences)),
        }
        for duplicate in duplicates
        if not duplicate.note
    ]


# --- bars of time: what entries and claims named when, and who held their addresses ---


def entry_bar(request: HttpRequest, entry: Entry) -> TimeBar:
    """Return the versions of an entry, and the holders of its addresses if the user may view blocks."""
    versions = history.past_versions(EntryEvent, entry.pk, request.user)
    row = SegmentRow(str(entry.mac), list(_segments(versions)))
    return _bar(request, row, entry.ips, entry.ippool.cluster_id)


def claim_bar(request: HttpRequest, claim: IPAMClaim) -> TimeBar:
    """Return the versions of a claim, and the holders of its addresses if the user may view blocks."""
    versions = history.past_versions(IPAMClaimEvent, claim.pk, request.user)
    row = SegmentRow(claim.name, list(_segments(versions)))
    return _bar(request, row, claim.ips, claim.cluster_id)


def _segments(versions: Iterable[tuple[Any, datetime | None]]) -> Iterator[Segment]:
    """Yield a segment for each run of versions with the same VM and addresses."""
    for (vm, ips), run in groupby(versions, key=lambda version: _subject(version[0])):
        events = list(run)
        label = " ".join(part for part in (vm, ips) if part)
        state = "active" if ips else "pending"
        yield Segment(label, state, events[0][0].pgh_created_at, events[-1][1])


def _subject(event: Any) -> tuple[str, str]:
    vm = f"{event.namespace}/{event.vm}" if event.vm else ""
    return vm, ", ".join(event.ips)


def _bar(request: HttpRequest, row: SegmentRow, ips: Iterable[str], cluster_id: int) -> TimeBar:
    rows = [row]
    if request.user.has_perm("pools.view_block"):
        tenures = [
            tenure
            for ip in ips
            for tenure in addresses.find_holders(ip_interface(ip).ip, cluster_id=cluster_id)[1]
        ]
        held = time_bars.of_tenures(request, tenures)
        rows += held.all_rows if held else ()
    return TimeBar(rows, timezone.now())
