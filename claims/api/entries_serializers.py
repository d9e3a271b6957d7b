"""Entries of IPPools, duplicates and conditions as REST shows and reads them."""

from __future__ import annotations

from typing import Any

from claims.core import entries
from claims.entries import ippools
from claims.models import Entry
from claims.models.networks import EntrySource
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation, Serializer

MAC_SCHEMA = {"type": "string", "example": "00:1a:4b:12:34:56"}
IPS_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "maxItems": entries.MAX_ADDRESSES,
    "items": {"type": "string", "example": "10.0.0.5/24"},
}


class OccurrenceSerializer(Representation):
    """Another place of a MAC or an address; what does not apply to its type is absent."""

    type = fields.TextField()
    id = fields.IntegerField(required=False)
    name = fields.TextField(required=False)
    namespace = fields.TextField(required=False)
    vm = fields.TextField(required=False)
    mac = fields.TextField(required=False)


class DuplicateSerializer(Representation):
    """A MAC or an address with its other occurrences; a `note` is no conflict."""

    kind = fields.ChoiceField(("mac", "ip"))
    value = fields.TextField()
    note = fields.FlagField(required=False)

    def get_fields(self) -> dict[str, Any]:
        occurrences = fields.ListField(child=OccurrenceSerializer(), read_only=True)
        return super().get_fields() | {"with": occurrences}  # a keyword of Python


class ConditionSerializer(Representation):
    """A condition of a Kubernetes object, shown as the object has it."""

    type = fields.TextField()
    status = fields.TextField()
    reason = fields.TextField()
    message = fields.TextField()
    lastTransitionTime = fields.TextField()  # noqa: N815  # as Kubernetes has it

    def to_representation(self, instance: Any) -> Any:
        return instance


class DuplicateCountsSerializer(Representation):
    """The numbers of MACs and addresses with duplicates."""

    mac = fields.IntegerField()
    ip = fields.IntegerField()


class EntryWarningSerializer(Representation):
    """What is accepted, but will not work everywhere."""

    code = fields.TextField()
    message = fields.TextField()


def _rules(field: fields.ParsedField) -> entries.Rules:
    entry: Entry = field.context["row"]
    return ippools.rules(entry.ippool.network)


class IPsField(fields.ParsedField):
    """The addresses of an entry, read by the `rules` of its network."""

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        return entries.parse_ips(data, _rules(self), "")

    def to_representation(self, value: Any) -> list[str]:
        return list(value)


class MACField(fields.TextField):
    """A MAC address, read by the `rules` of its network."""

    def to_internal_value(self, data: Any) -> str:
        return entries.parse_mac(data, _rules(self), "")


class EntrySerializer(Serializer):
    """A MAC address of an IPPool and its addresses."""

    id = fields.IntegerField(read_only=True)
    ippool = fields.IntegerField(source="ippool_id", read_only=True)
    mac = MACField(schema=MAC_SCHEMA)
    ips = IPsField(schema=IPS_SCHEMA)
    vm = fields.TextField(entries.parse_vm, required=False)
    namespace = fields.TextField(entries.parse_namespace, required=False)
    source = fields.ChoiceField(EntrySource.values, read_only=True)  # type: ignore[assignment]  # the metaclass takes it out
    note = fields.DescriptionField(required=False)
    created_at = fields.TimeField(read_only=True)
    duplicates = fields.ListField(child=DuplicateSerializer(), read_only=True)
    warnings = fields.ListField(child=EntryWarningSerializer(), read_only=True)


class EntryMapSerializer(Serializer):
    """All entries: the addresses of each MAC address, as in an IPPool. Only described: `core` reads it."""

    entries = fields.ParsedField(schema={"type": "object", "additionalProperties": IPS_SCHEMA})


class EntryDiffSerializer(Representation):
    """What a replacement of all entries did, and the state of the IPPool after it."""

    created = fields.IntegerField()
    changed = fields.IntegerField()
    deleted = fields.IntegerField()
    unchanged = fields.IntegerField()
    duplicates = DuplicateCountsSerializer()
    conditions = fields.ListField(child=ConditionSerializer())
    version = fields.IntegerField()
