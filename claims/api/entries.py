"""Endpoints of an IPPool's entries: one, many or the whole set, each with its duplicates."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from claims.access import namespaces
from claims.address_index import duplicates
from claims.api import scoped
from claims.core import entries as core, ippool, macs
from claims.entries import entries as services, ippools
from claims.models import Entry, IndexEntry, IPPool
from claims.models.networks import EntrySource, FirstAddress
from pools.core import errors, object_reader
from pools.platform import documents, idempotency, search
from pools.platform.rest import fields, filters, generics, parsing, query, schema
from pools.platform.rest.serializers import ReasonSerializer, Representation, Serializer

MAC_SCHEMA = {"type": "string", "example": "00:1a:4b:12:34:56"}
IPS_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "maxItems": core.MAX_ADDRESSES,
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


def _rules(field: fields.ParsedField) -> core.Rules:
    entry: Entry = field.context["row"]
    return ippools.rules(entry.ippool.network)


class IPsField(fields.ParsedField):
    """The addresses of an entry, read by the `rules` of its network."""

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        return core.parse_ips(data, _rules(self), "")

    def to_representation(self, value: Any) -> list[str]:
        return list(value)


class MACField(fields.TextField):
    """A MAC address, read by the `rules` of its network."""

    def to_internal_value(self, data: Any) -> str:
        return core.parse_mac(data, _rules(self), "")


class EntrySerializer(Serializer):
    """A MAC address of an IPPool and its addresses."""

    id = fields.IntegerField(read_only=True)
    ippool = fields.IntegerField(source="ippool_id", read_only=True)
    mac = MACField(schema=MAC_SCHEMA)
    ips = IPsField(schema=IPS_SCHEMA)
    vm = fields.TextField(core.parse_vm, required=False)
    namespace = fields.TextField(core.parse_namespace, required=False)
    source = fields.ChoiceField(EntrySource.values, read_only=True)  # type: ignore[assignment]  # the metaclass takes it out
    note = fields.DescriptionField(required=False)
    created_at = fields.TimeField(read_only=True)
    duplicates = fields.ListField(child=DuplicateSerializer(), read_only=True)
    warnings = fields.ListField(child=ReasonSerializer(), read_only=True)


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


_VIEW = ("claims.view_entry",)
LARGEST_BODY = 10 * 1024 * 1024  # bytes; 100,000 entries need about 6 MB
MOST_ENTRIES = 10_000  # entries in one POST
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
_ENTRY_OR_LIST = PolymorphicProxySerializer(
    "EntryOrList", [EntrySerializer, EntrySerializer(many=True)], None, many=False
)
_LIST_OR_MAP = PolymorphicProxySerializer(
    "EntryListOrMap", [EntrySerializer(many=True), EntryMapSerializer], None, many=False
)

parse_any_mac = partial(macs.parse_mac, lenient=True)


class EntryFilter(filters.FilterSet):
    duplicate = filters.choice(
        "mac", "ip", method="filter_duplicate", help_text="Only entries with such duplicates."
    )
    mac = filters.Filter(parse_any_mac, help_text="In any notation.")
    ip = filters.Filter(query.cidr, method="filter_ip", help_text="An address or a CIDR.")
    vm = filters.Filter()
    namespace = filters.Filter()
    source = filters.choice(*EntrySource.values)
    q = filters.Filter(
        select=search.matching, help_text="A part of MAC, address, VM, namespace or note."
    )

    def filter_duplicate(self, rows: QuerySet[Entry], _name: str, kind: str) -> QuerySet[Entry]:
        return self._filter_indexed(rows, **{f"duplicate_{kind}": True})

    def filter_ip(self, rows: QuerySet[Entry], _name: str, cidr: str) -> QuerySet[Entry]:
        lookup = "address__net_contained_or_equal" if "/" in cidr else "address"
        return self._filter_indexed(rows, **{lookup: cidr})

    def _filter_indexed(self, rows: QuerySet[Entry], **lookup: Any) -> QuerySet[Entry]:
        view: Any = self.request.parser_context["view"]
        index_entries = IndexEntry.objects.filter(network=view.ippool.network_id, **lookup)
        return rows.filter(pk__in=index_entries.filter(entry__isnull=False).values("entry_id"))


class Entries(scoped.ScopedView, generics.ModelViewSet):
    """The entries of an IPPool, with their duplicates."""

    # `_entry_source` and `replace` check who may add and replace entries, `perform_destroy` who may delete one.
    needs = {
        "GET": _VIEW,
        "POST": _VIEW,  # the response contains the written entries
        "PUT": _VIEW,
        "PATCH": ("claims.change_entry",),
        "DELETE": _VIEW,
    }
    idempotent = ("POST", "PUT")
    problem_statuses = (412,)
    queryset = Entry.objects.all()
    serializer_class = EntrySerializer
    filterset_class = EntryFilter
    orderings = {"id": ("id",), "vm": ("vm", "id"), "address": ("first_address", "id")}
    lookup_url_kwarg = "entry_id"
    row_text = "An entry."

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset().filter(ippool=self.kwargs["ippool_id"])
        if self.detail:
            return rows.select_related("ippool__network")
        ordered: QuerySet[Any] = rows.annotate(first_address=FirstAddress("ips"))
        return ordered

    def load(self, rows: list[Any]) -> None:
        by_entry = duplicates.of_entries(rows, scoped.request_scope(self.request))
        for entry in rows:
            entry.duplicates = [each.as_json() for each in by_entry.get(entry.pk, ())]
            entry.warnings = core.warnings(entry.ips)

    @cached_property
    def ippool(self) -> IPPool:
        """The IPPool of the path. NotFound, also for a hidden one."""
        rows = IPPool.objects.select_related("cluster", "network")
        return scoped.get_row(self.request, rows, self.kwargs["ippool_id"])

    def list(self, request: Request, **path: Any) -> Response:
        """The entries of an IPPool, with their duplicates."""
        _ = self.ippool  # an absent IPPool is reported before the parameters
        return super().list(request, **path)

    @extend_schema(request=_ENTRY_OR_LIST, responses={201: _ENTRY_OR_LIST})
    @schema.example(
        {"mac": "00:1a:4b:12:34:56", "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"},
        "one VM",
    )
    def create(self, request: Request, ippool_id: int) -> Response:
        """Add an entry, or a list of 1 to 10,000 entries."""
        ip_pool = self.ippool
        raw = parsing.body(request, limit=LARGEST_BODY)
        _require_json(request)
        data = documents.load_json_value(raw, limit=LARGEST_BODY)
        is_list = isinstance(data, list)
        values = data if is_list else [data]
        if not data or len(values) > MOST_ENTRIES:
            message = f"an entry, or a list of 1 to {MOST_ENTRIES} entries, is expected"
            raise errors.InvalidInput.for_field("", "object_expected", message)
        # Read by `core`, as in files: up to 100,000 entries, of whose problems the first 100 are reported.
        rules = ippools.rules(ip_pool.network)
        specs = core.parse_list(values, rules, field="") if is_list else [core.parse(data, rules)]
        source = _entry_source(request, ip_pool, specs)
        requester = request.user if source == EntrySource.REQUEST else None

        def add() -> idempotency.StoredAnswer:
            entries = services.add(
                ip_pool.pk, specs, source=source, author=self.author(), requester=requester
            )
            self.load(entries)
            shown = [EntrySerializer(entry).data for entry in entries]
            return idempotency.StoredAnswer(201, shown if is_list else shown[0])

        stored = generics.run_once(request, add, body=raw)
        return Response(stored.answer, status=stored.status)

    @extend_schema(
        request={
            "application/json": _LIST_OR_MAP,
            "application/yaml": OpenApiTypes.STR,
        },
        responses=EntryDiffSerializer,
        parameters=[schema.IF_MATCH],
    )
    def replace(self, request: Request, ippool_id: int) -> Response:
        """Replace all entries.

        The body is a list of entries, the map of an IPPool, either of them in `entries`, or a manifest.
        """
        ip_pool = self.ippool
        for verb in ("add", "change", "delete"):
            generics.require(request, f"claims.{verb}_entry")
        _require_everything(request)
        raw = parsing.body(request, limit=LARGEST_BODY)
        specs = _parse_whole_set(request, raw, ip_pool)
        version = self.required_version(ip_pool)

        def work() -> idempotency.StoredAnswer:
            difference = services.replace(
                ip_pool.pk,
                specs,
                source=EntrySource.API,
                author=self.author(),
                version=version,
            )
            return idempotency.StoredAnswer(
                200, _show_difference(ip_pool.pk, difference, len(specs))
            )

        stored = generics.run_once(request, work, body=raw)
        return Response(stored.answer, status=stored.status)

    def perform_update(self, entry: Entry, values: dict[str, Any]) -> Entry:
        """Change an entry."""
        spec = core.EntrySpec(**{"mac": entry.mac, "ips": tuple(entry.ips), **values})
        scope = scoped.request_scope(self.request)
        if not scope.everything:
            if spec.namespace is not None:
                scope.require(entry.ippool.cluster_id, spec.namespace)
            if (spec.mac, spec.ips) != (entry.mac, tuple(entry.ips)):
                services.require_free(entry, spec, scope)
        return services.change(entry.pk, spec, author=self.author())

    def perform_destroy(self, entry: Entry) -> None:
        """Delete an entry."""
        services.require_withdrawal(self.request.user, entry)
        services.delete([entry.pk], author=self.author())


# --- requests -------------------------------------------------------------------------------------


def _require_json(request: Request) -> None:
    if parsing.media_type(request) != parsing.JSON:
        raise exceptions.UnsupportedMediaType(
            request.META.get("CONTENT_TYPE", ""), f"Send the body as {parsing.JSON}."
        )


def _parse_whole_set(request: Request, raw: bytes, ip_pool: IPPool) -> list[core.EntrySpec]:
    """Parse the body of a PUT in any of its forms; a key that occurs twice is two entries."""
    repeatable: Sequence[documents.Path] = ((), ("entries",), ippool.ENTRIES)
    if parsing.media_type(request) in _YAML:
        yaml_documents = documents.load_yaml(raw, limit=LARGEST_BODY, repeatable=repeatable)
        if len(yaml_documents) > 1:
            raise errors.InvalidInput.for_field("", "object_expected", "one document is expected")
        data: Any = yaml_documents[0].data
    else:
        _require_json(request)
        data = documents.load_json_value(raw, limit=LARGEST_BODY, repeatable=repeatable)
    rules, field = ippools.rules(ip_pool.network), ""
    if isinstance(data, dict) and data.get("kind") == ippool.KIND:
        parsed_pool = ippool.parse_strict(data)
        if parsed_pool.network_name != ip_pool.network.name:
            message = f"the IPPool is that of {ip_pool.network.name}"
            path = "spec.network-name"
            raise errors.InvalidInput.for_field(
                path, "another_network", message, parsed_pool.network_name
            )
        data, field = data["spec"].get("entries") or {}, "spec.entries"
        rules = ippools.rules(ip_pool.network, observed=True)  # as a cluster has it
    elif isinstance(data, dict) and "entries" in data:
        fields = object_reader.Fields(data, "", object_reader.ProblemReport())
        fields.allow_only("entries")
        fields.report.raise_any()
        data, field = data["entries"], "entries"
    if isinstance(data, list) and not isinstance(data, object_reader.RepeatedKey):
        return core.parse_list(data, rules, field=field)
    return core.parse_map(data, rules, field=field)


# --- permissions ----------------------------------------------------------------------------------


def _entry_source(request: Request, ip_pool: IPPool, specs: Sequence[core.EntrySpec]) -> str:
    """Return the source of added entries: `request` for a VM owner, whose request is validated, else `api`."""
    if request.user.has_perm("claims.add_entry") and scoped.request_scope(request).everything:
        return EntrySource.API
    services.check_request(request.user, ip_pool, specs)
    return EntrySource.REQUEST


def _require_everything(request: Request) -> None:
    if not scoped.request_scope(request).everything:
        raise errors.NotAllowed(f"This needs the permission {namespaces.EVERY_NAMESPACE}.")


# --- responses ------------------------------------------------------------------------------------


def _show_difference(ippool_id: int, difference: services.EntryDiff, count: int) -> dict[str, Any]:
    ip_pool = IPPool.objects.get(pk=ippool_id)
    values = {
        "created": len(difference.new),
        "changed": len(difference.changed),
        "deleted": len(difference.gone),
        "unchanged": count - len(difference.new) - len(difference.changed),
        "duplicates": {"mac": ip_pool.duplicate_macs, "ip": ip_pool.duplicate_ips},
        "conditions": ip_pool.conditions,
        "version": ip_pool.version,
    }
    shown: dict[str, Any] = EntryDiffSerializer(values).data
    return shown
