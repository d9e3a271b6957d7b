"""Endpoints of an IPPool's entries: one, many or the whole set, each with its duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request

from claims.access import namespaces
from claims.address_index import duplicates
from claims.api import scoped
from claims.api.schemas import ippools as ippool_schema
from claims.core import entries as core
from claims.core import ippool, macs
from claims.entries import entries as services
from claims.entries import ippools, requests, search
from claims.models import Entry, IndexEntry, IPPool
from claims.models.ippools import EntrySource
from pools.api import pools
from pools.core import block_fields, errors, object_reader
from pools.platform import documents, idempotency
from pools.platform.rest import pagination, parsing, query, views

_VIEW = ("claims.view_entry",)
LARGEST_BODY = 10 * 1024 * 1024  # bytes; 100,000 entries need about 6 MB
MOST_ENTRIES = 10_000  # entries in one POST
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
_READ_ONLY = ("id", "ippool", "source", "created_at", "duplicates", "warnings")


class Entries(views.View):
    # `_entry_source` and `put` check who may add and replace entries.
    needs = {"GET": _VIEW, "POST": _VIEW, "PUT": _VIEW}  # the response contains the written entries

    @extend_schema(**ippool_schema.ENTRIES)
    def get(self, request: Request, ippool_id: int) -> views.Answer:
        ip_pool = _ippool(request, ippool_id)
        parameters = query.Query(request)
        rows = _filter(scoped.rows(request, Entry).filter(ippool=ip_pool), ip_pool, parameters)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "vm": ("vm", "id")},
                fields=ippool_schema.ENTRY_FIELDS,
                shape=lambda page_rows: _page(request, page_rows),
            )
        )

    @extend_schema(**ippool_schema.ENTRIES_ADD)
    def post(self, request: Request, ippool_id: int) -> views.Answer:
        ip_pool = _ippool(request, ippool_id)
        raw = _read_body(request)
        _require_json(request)
        data = documents.load_json_value(raw, limit=LARGEST_BODY)
        values = data if isinstance(data, list) else [data]
        if not data or len(values) > MOST_ENTRIES:
            message = f"an entry, or a list of 1 to {MOST_ENTRIES} entries, is expected"
            raise errors.InvalidInput.for_field("", "object_expected", message)
        rules = ippools.rules(ip_pool.network)
        if isinstance(data, list):
            specs = core.parse_list(values, rules, field="")
        else:
            specs = [core.parse(data, rules)]
        source = _entry_source(request, ip_pool, specs)

        def add() -> idempotency.Stored:
            entries = services.add(ip_pool.pk, specs, source=source, author=views.author(request))
            shapes = _shapes(request, entries)
            return idempotency.Stored(201, shapes if isinstance(data, list) else shapes[0])

        stored = views.run_once(request, add, body=raw)
        return views.answer(stored.answer, status=stored.status)

    @extend_schema(**ippool_schema.ENTRIES_REPLACE)
    def put(self, request: Request, ippool_id: int) -> views.Answer:
        ip_pool = _ippool(request, ippool_id)
        for verb in ("add", "change", "delete"):
            views.require(request, f"claims.{verb}_entry")
        _require_everything(request)
        raw = _read_body(request)
        specs = _parse_whole_set(request, raw, ip_pool)
        version = pools.version(request, ip_pool.version)

        def replace() -> idempotency.Stored:
            difference = services.replace(
                ip_pool.pk,
                specs,
                source=EntrySource.API,
                author=views.author(request),
                version=version,
            )
            return idempotency.Stored(200, _difference_shape(ip_pool.pk, difference, len(specs)))

        stored = views.run_once(request, replace, body=raw)
        return views.answer(stored.answer, status=stored.status)


class EntryView(views.View):
    needs = {"GET": _VIEW, "PATCH": ("claims.change_entry",), "DELETE": _VIEW}

    @extend_schema(**ippool_schema.ENTRY)
    def get(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        return views.answer(_shapes(request, [_entry(request, ippool_id, entry_id)])[0])

    @extend_schema(**ippool_schema.ENTRY_PATCH)
    def patch(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        entry = _entry(request, ippool_id, entry_id)
        body = parsing.changes(request, *core.FIELDS, *_READ_ONLY)
        refuse_fields(body, _READ_ONLY)
        spec = _changed_spec(body, entry)
        scope = scoped.request_scope(request)
        if spec.namespace is not None and not scope.everything:
            scope.require(entry.ippool.cluster_id, spec.namespace)
        changed = services.change(entry.pk, spec, author=views.author(request))
        return views.answer(_shapes(request, [changed])[0])

    @extend_schema(**ippool_schema.ENTRY_DELETE)
    def delete(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        entry = _entry(request, ippool_id, entry_id)
        requests.require_withdrawal(request.user, entry)
        services.delete([entry.pk], author=views.author(request))
        return views.no_content()


def parse_mac_parameter(value: str, name: str) -> str:
    """Parse the MAC address of a query parameter, in any notation."""
    return macs.parse_mac(value, field=name, lenient=True)


def _ippool(request: Request, ippool_id: int) -> IPPool:
    return scoped.get_row(request, IPPool.objects.select_related("cluster", "network"), ippool_id)


def _entry(request: Request, ippool_id: int, entry_id: int) -> Entry:
    rows = Entry.objects.select_related("ippool__network").filter(ippool=ippool_id)
    return scoped.get_row(request, rows, entry_id)


# --- requests -------------------------------------------------------------------------------------


def _filter(rows: QuerySet[Entry], ip_pool: IPPool, parameters: query.Query) -> QuerySet[Entry]:
    index_entries = IndexEntry.objects.filter(network=ip_pool.network_id, entry__isnull=False)
    if kind := parameters.parse("duplicate", query.choice("mac", "ip")):
        rows = rows.filter(
            pk__in=index_entries.filter(**{f"duplicate_{kind}": True}).values("entry_id")
        )
    if mac_address := parameters.parse("mac", parse_mac_parameter):
        rows = rows.filter(mac=mac_address)
    if within := parameters.parse("ip", query.cidr):
        lookup = "address__net_contained_or_equal" if "/" in within else "address"
        rows = rows.filter(pk__in=index_entries.filter(**{lookup: within}).values("entry_id"))
    for name in ("vm", "namespace"):
        if text := parameters.text(name):
            rows = rows.filter(**{name: text})
    if source := parameters.parse("source", query.choice(*EntrySource.values)):
        rows = rows.filter(source=source)
    if text := parameters.text("q"):
        rows = search.matching_entries(rows, text)
    return rows


def _read_body(request: Request) -> bytes:
    django_request: HttpRequest = request._request
    if "chunked" in django_request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return parsing.body(request)
    if int(django_request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
        raise parsing.TooLarge
    return django_request.body


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
    elif isinstance(data, dict) and "entries" in data:
        fields = object_reader.Fields(data, "", object_reader.ProblemReport())
        fields.only("entries")
        fields.report.raise_any()
        data, field = data["entries"], "entries"
    if isinstance(data, list) and not isinstance(data, object_reader.RepeatedKey):
        return core.parse_list(data, rules, field=field)
    return core.parse_map(data, rules, field=field)


def _changed_spec(body: object_reader.Fields, entry: Entry) -> core.EntrySpec:
    rules = ippools.rules(entry.ippool.network)
    new_mac, ips = entry.mac, tuple(entry.ips)
    if body.has("mac"):
        new_mac = body.parse("mac", lambda value, path: core.parse_mac(value, rules, path)) or ""
    if body.has("ips"):
        ips = body.parse("ips", lambda value, path: core.parse_ips(value, rules, path)) or ()
    vm, namespace, note = (core.optional(body, name) for name in ("vm", "namespace", "note"))
    body.report.raise_any()
    return core.EntrySpec(new_mac, ips, vm, namespace, note)


def refuse_fields(body: object_reader.Fields, names: Sequence[str]) -> None:
    """Report the fields that a client cannot set."""
    for name in names:
        if name in body.data:
            body.report.add(name, "read_only_field", "is worked out and cannot be set")


# --- permissions ----------------------------------------------------------------------------------


def _entry_source(request: Request, ip_pool: IPPool, specs: Sequence[core.EntrySpec]) -> str:
    """Return the source of added entries: `request` for a VM owner, whose request is validated, else `api`."""
    if request.user.has_perm("claims.add_entry") and scoped.request_scope(request).everything:
        return EntrySource.API
    requests.check(request.user, ip_pool, specs)
    return EntrySource.REQUEST


def _require_everything(request: Request) -> None:
    if not scoped.request_scope(request).everything:
        raise errors.NotAllowed(f"This needs the permission {namespaces.EVERY_NAMESPACE}.")


# --- responses ------------------------------------------------------------------------------------


def _page(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("ippool_id", "mac", "ips", "vm", "namespace", "source", "note", "created_at")
    entries = [Entry(pk=row["id"], **{name: row[name] for name in names}) for row in rows]
    return _shapes(request, entries)


def _shapes(request: Request, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    duplicates_by_entry = duplicates.of_entries(entries, scoped.request_scope(request))
    return [_shape(entry, duplicates_by_entry.get(entry.pk, ())) for entry in entries]


def _shape(entry: Entry, entry_duplicates: Sequence[duplicates.Duplicate]) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "ippool": entry.ippool_id,
        "mac": entry.mac,
        "ips": list(entry.ips),
        "vm": entry.vm,
        "namespace": entry.namespace,
        "source": entry.source,
        "note": entry.note,
        "created_at": block_fields.time(entry.created_at),
        "duplicates": [duplicate.as_json() for duplicate in entry_duplicates],
        "warnings": [
            {"code": warning.code, "message": warning.message}
            for warning in core.warnings(entry.ips)
        ],
    }


def _difference_shape(ippool_id: int, difference: services.EntryDiff, count: int) -> dict[str, Any]:
    ip_pool = IPPool.objects.get(pk=ippool_id)
    return {
        "created": len(difference.new),
        "changed": len(difference.changed),
        "deleted": len(difference.gone),
        "unchanged": count - len(difference.new) - len(difference.changed),
        "duplicates": {"mac": ip_pool.duplicate_macs, "ip": ip_pool.duplicate_ips},
        "conditions": ip_pool.conditions,
        "version": ip_pool.version,
    }
