"""What pages of several kinds of objects show of VMs: links, sources of entries, manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from claims.access import namespaces
from claims.models import IPAMClaim, Network
from claims.models.networks import EntrySource
from claims.workloads import vm_lookup
from pools.core import errors
from pools.platform import documents
from pools.platform.admin import display, pages

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


def shared_texts(texts: Iterable[str]) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Return each text that occurs more than once, with its count, and by text its number in this list."""
    counts = Counter(texts)
    shared = [(text, count) for text, count in counts.items() if count > 1]
    return shared, {text: number for number, (text, _count) in enumerate(shared, 1)}


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
