"""Duplicates as people read them: each with all the occurrences that name the same, and links to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

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
_WORDS = {
    "entry": "MAC entry",
    "ipamclaim": "IPAMClaim",
    "workload": "running",
    "gateway": "gateway",
    "infrastructure": "infrastructure subnet",
    "reserved_range": "reserved range",
    "reserved_subnet": "reserved subnet",
    "block": "held by",
    "other": "somebody else",
}


def words(occurrence: Occurrence) -> str:
    """`MAC entry of web (shop)`, `gateway 10.0.0.1`."""
    if occurrence.type == "entry":
        owner = occurrence.vm or occurrence.mac
        name = (
            (
                gettext("of %(namespace)s/%(owner)s")
                % {"namespace": occurrence.namespace, "owner": owner}
            )
            if occurrence.namespace
            else (gettext("of %(owner)s") % {"owner": owner})
        )
        text = f"{_WORDS[occurrence.type]} {name}"
        return (
            (gettext("%(text)s in %(where)s") % {"text": text, "where": occurrence.name})
            if occurrence.name
            else text
        )
    name = f"{occurrence.namespace}/{occurrence.name}" if occurrence.namespace else occurrence.name
    return f"{_WORDS.get(occurrence.type, occurrence.type)} {name}".strip()


def url(occurrence: Occurrence, network: Network | None = None) -> str:
    """Where the place is shown; "" when no page shows it."""
    model = _MODELS.get(occurrence.type)
    if model is not None:
        if occurrence.id is None or not admin.site.is_registered(model):
            return ""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        return reverse(name, args=[occurrence.id])
    return display.url_of(network) if network is not None and occurrence.type != "other" else ""


def linked(occurrence: Occurrence, network: Network | None = None) -> SafeString | str:
    occurrence_url = url(occurrence, network)
    return display.link(occurrence_url, words(occurrence)) if occurrence_url else words(occurrence)


def badge(duplicates: Sequence[Duplicate], network: Network | None = None) -> SafeString:
    """What contradicts a row, named; a note is told and no contradiction."""
    if not duplicates:
        return display.DASH
    return format_html(
        '<span class="cad-stack">{}</span>',
        format_html_join("", "{}", ((_line(duplicate, network),) for duplicate in duplicates)),
    )


def _line(duplicate: Duplicate, network: Network | None) -> SafeString:
    occurrences = format_html_join(
        ", ", "{}", ((linked(occurrence, network),) for occurrence in duplicate.occurrences)
    )
    if duplicate.note:
        return format_html(
            '<span><span class="cad-dim">{} lies in</span> {}</span>', duplicate.value, occurrences
        )
    kind = "MAC" if duplicate.kind == "mac" else "IP"
    return format_html(
        '<span><span class="cad-state cad-state-conflict" title="{}"><span aria-hidden="true">▲</span>'
        " {}</span> also {}</span>",
        duplicate.value,
        (gettext("duplicate %(kind)s") % {"kind": kind}),
        occurrences,
    )


def as_json(
    duplicates: Iterable[Duplicate], network: Network | None = None
) -> list[dict[str, Any]]:
    """The same for the form that warns while somebody types."""
    return [
        {
            "kind": duplicate.kind,
            "value": duplicate.value,
            "note": duplicate.note,
            "occurrences": [
                {"text": words(occurrence), "url": url(occurrence, network)}
                for occurrence in duplicate.occurrences
            ],
        }
        for duplicate in duplicates
    ]


def sentences(duplicates: Iterable[Duplicate]) -> list[str]:
    """For a message after saving."""
    return [
        f"{duplicate.value} is a duplicate: also {', '.join(map(words, duplicate.occurrences))}."
        for duplicate in duplicates
        if not duplicate.note
    ]
