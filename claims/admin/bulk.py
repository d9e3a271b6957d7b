"""Changes of several networks or MAC entries at once."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import namespaces
from claims.admin import scoped
from claims.core import entries as core
from claims.core.entries import EntrySpec
from claims.entries import entries
from claims.models import Entry, Network
from claims.networks import networks
from pools.core import errors
from pools.platform import events
from pools.platform.admin import attributes, bulk_edit, forms as fields, related


class NetworkBulkForm(bulk_edit.BulkForm, attributes.BulkAttributeFields):
    attributed = Network
    clearable = frozenset({"description"})
    description = fields.description_field()
    applied = forms.BooleanField(
        label=_("Apply it to the cluster"),
        required=False,
        widget=fields.tick(),
        help_text=_("If not applied, the network follows its object in the cluster."),
    )


class EntryBulkForm(bulk_edit.BulkForm):
    clearable = frozenset({"vm", "namespace", "note"})
    namespace = fields.ParsedField(
        lambda text: core.parse_namespace(text.strip(), ""),
        label=_("Namespace"),
        required=False,
        widget=related.name_widget(scoped.OFFERED_NAMESPACES),
    )
    vm = fields.ParsedField(
        lambda text: core.parse_vm(text.strip(), ""),
        label=_("VM"),
        required=False,
        widget=fields.text(),
        help_text=_("Only for entries that are interfaces of the same VM."),
    )
    note = fields.reason_field(label=_("Note"), required=False, help_text="")


def _change_network(network: Network, values: Mapping[str, Any], author: events.Author) -> Network:
    row = Network.objects.select_related("cluster").filter(pk=network.pk).first()
    if row is None:
        raise errors.NotFound(gettext("There is no such network."))
    return networks.change(row, attributes.bulk_values(row, values), author=author)


def _change_entry(entry: Entry, values: Mapping[str, Any], author: events.Author) -> Entry:
    texts = {name: values.get(name) for name in ("vm", "namespace", "note")}
    return entries.change(entry.pk, EntrySpec(entry.mac, tuple(entry.ips), **texts), author=author)


def _delete_entry(entry: Entry, _values: Mapping[str, Any], author: events.Author) -> None:
    if not entries.delete([entry.pk], author=author):
        raise errors.NotFound(gettext("There is no such entry."))


NETWORKS = bulk_edit.BulkEdit(
    model=Network,
    permissions=("claims.change_network",),
    rows=lambda request: scoped.rows(request, Network).select_related("cluster"),
    form=NetworkBulkForm,
    change=_change_network,
    show=attributes.show_value,
)
ENTRIES = bulk_edit.BulkEdit(
    model=Entry,
    permissions=("claims.change_entry", namespaces.EVERY_NAMESPACE),
    rows=lambda request: scoped.rows(request, Entry),
    form=EntryBulkForm,
    change=_change_entry,
)
ENTRY_DELETION = bulk_edit.BulkEdit(
    model=Entry,
    permissions=("claims.delete_entry", namespaces.EVERY_NAMESPACE),
    rows=lambda request: scoped.rows(request, Entry),
    change=_delete_entry,
    deletes=True,
)
