"""Duplicates on admin pages: each with links to all objects that use the same MAC or IP address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.address_index.duplicates import Duplicate, Occurrence
from claims.models import Entry, IPAMClaim, Network, Workload
from pools.models import Block
from pools.platform.admin import display

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


def describe(occurrence: Occurrence) -> str:
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
    return display.link(place_url, describe(occurrence)) if place_url else describe(occurrence)


def badge(duplicates: Sequence[Duplicate], network: Network | None = None) -> SafeString:
    """Return the duplicates of a row as HTML lines; a note, such as a reserved subnet, is no conflict."""
    if not duplicates:
        return display.DASH
    lines = ((_duplicate_line(duplicate, network),) for duplicate in duplicates)
    return format_html('<span class="cad-stack">{}</span>', format_html_join("", "{}", lines))


def chip(duplicates: Sequence[Duplicate], network: Network | None = None) -> SafeString:
    """Return the number of conflicts of a row in one line, which unfolds to them."""
    conflicts = sum(not duplicate.note for duplicate in duplicates)
    if not conflicts:
        return badge(duplicates, network)
    label = ngettext("%(number)s conflict", "%(number)s conflicts", conflicts)
    return format_html(
        '<details class="cad-conflicts"><summary class="cad-state cad-state-conflict">'
        '<span aria-hidden="true">▲</span> {}</summary>{}</details>',
        label % {"number": conflicts},
        badge(duplicates, network),
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
    kind = "MAC" if duplicate.kind == "mac" else "IP"
    return format_html(
        '<span><span class="cad-state cad-state-conflict" title="{}"><span aria-hidden="true">▲</span>'
        " {}</span> {} {}</span>",
        duplicate.value,
        gettext("duplicate %(kind)s") % {"kind": kind},
        gettext("also"),
        occurrences,
    )


def warnings(duplicates: Iterable[Duplicate], network: Network | None = None) -> SafeString:
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


def warning_texts(duplicates: Iterable[Duplicate]) -> list[str]:
    """Return one sentence for each duplicate that is a conflict, for messages after saving."""
    return [
        gettext("%(value)s is a duplicate: also %(occurrences)s.")
        % {"value": duplicate.value, "occurrences": ", ".join(map(describe, duplicate.occurrences))}
        for duplicate in duplicates
        if not duplicate.note
    ]
