"""ippools/ID/entries/: one, many or the whole set; every answer says its duplicates."""

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
from claims.models import Entry, IPPool, Place
from claims.models.ippools import EntrySource
from pools.api import pools
from pools.core import block_fields, errors, object_reader
from pools.platform import documents, idempotency
from pools.platform.rest import pagination, parsing, query, views

_SEE = ("claims.view_entry",)
LARGEST = 10 * 1024 * 1024  # bytes: a hundred thousand entries are some six million
MOST = 10_000  # entries in one POST
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
_READ_ONLY = ("id", "ippool", "source", "created_at", "duplicates", "warnings")


class Entries(views.View):
    # Who may add and replace is said by `_may_add` and `put`.
    needs = {"GET": _SEE, "POST": _SEE, "PUT": _SEE}  # what is written is shown

    @extend_schema(**ippool_schema.ENTRIES)
    def get(self, request: Request, ippool_id: int) -> views.Answer:
        of = _ippool(request, ippool_id)
        parameters = query.Query(request)
        rows = _filtered(scoped.rows(request, Entry).filter(ippool=of), of, parameters)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "vm": ("vm", "id")},
                fields=ippool_schema.ENTRY_FIELDS,
                shape=lambda found: _page(request, found),
            )
        )

    @extend_schema(**ippool_schema.ENTRIES_ADD)
    def post(self, request: Request, ippool_id: int) -> views.Answer:
        of = _ippool(request, ippool_id)
        raw = _body(request)
        _require_json(request)
        data = documents.load_json_value(raw, limit=LARGEST)
        given = data if isinstance(data, list) else [data]
        if not data or len(given) > MOST:
            message = f"an entry, or a list of 1 to {MOST} entries, is expected"
            raise errors.InvalidInput.for_field("", "object_expected", message)
        rules = ippools.rules(of.network)
        if isinstance(data, list):
            wanted = core.parse_list(given, rules, field="")
        else:
            wanted = [core.parse(data, rules)]
        source = _may_add(request, of, wanted)

        def add() -> idempotency.Stored:
            made = services.add(of.pk, wanted, source=source, author=views.author(request))
            said = _shapes(request, made)
            return idempotency.Stored(201, said if isinstance(data, list) else said[0])

        done = views.once(request, add, body=raw)
        return views.answer(done.answer, status=done.status)

    @extend_schema(**ippool_schema.ENTRIES_REPLACE)
    def put(self, request: Request, ippool_id: int) -> views.Answer:
        of = _ippool(request, ippool_id)
        for verb in ("add", "change", "delete"):
            views.require(request, f"claims.{verb}_entry")
        _require_everything(request)
        raw = _body(request)
        wanted = _whole_set(request, raw, of)
        version = pools.version(request, of.version)

        def replace() -> idempotency.Stored:
            found = services.replace(
                of.pk, wanted, source=EntrySource.API, author=views.author(request), version=version
            )
            return idempotency.Stored(200, _told(of.pk, found, len(wanted)))

        done = views.once(request, replace, body=raw)
        return views.answer(done.answer, status=done.status)


class EntryView(views.View):
    needs = {"GET": _SEE, "PATCH": ("claims.change_entry",), "DELETE": _SEE}

    @extend_schema(**ippool_schema.ENTRY)
    def get(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        return views.answer(_shapes(request, [_entry(request, ippool_id, entry_id)])[0])

    @extend_schema(**ippool_schema.ENTRY_PATCH)
    def patch(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        found = _entry(request, ippool_id, entry_id)
        body = parsing.changes(request, *core.FIELDS, *_READ_ONLY)
        refuse(body, _READ_ONLY)
        wanted = _changed(body, found)
        seen = scoped.seen(request)
        if wanted.namespace is not None and not seen.everything:
            seen.require(found.ippool.cluster_id, wanted.namespace)
        changed = services.change(found.pk, wanted, author=views.author(request))
        return views.answer(_shapes(request, [changed])[0])

    @extend_schema(**ippool_schema.ENTRY_DELETE)
    def delete(self, request: Request, ippool_id: int, entry_id: int) -> views.Answer:
        found = _entry(request, ippool_id, entry_id)
        requests.require_withdrawal(request.user, found)
        services.delete([found.pk], author=views.author(request))
        return views.nothing()


def mac(value: str, name: str) -> str:
    """A query's MAC address, in any of its forms."""
    return macs.parse_mac(value, field=name, lenient=True)


def _ippool(request: Request, ippool_id: int) -> IPPool:
    return scoped.one(request, IPPool.objects.select_related("cluster", "network"), ippool_id)


def _entry(request: Request, ippool_id: int, entry_id: int) -> Entry:
    rows = Entry.objects.select_related("ippool__network").filter(ippool=ippool_id)
    return scoped.one(request, rows, entry_id)


# --- what is read ---------------------------------------------------------------------------------


def _filtered(rows: QuerySet[Entry], of: IPPool, parameters: query.Query) -> QuerySet[Entry]:
    places = Place.objects.filter(network=of.network_id, entry__isnull=False)
    if kind := parameters.parse("duplicate", query.choice("mac", "ip")):
        rows = rows.filter(pk__in=places.filter(**{f"duplicate_{kind}": True}).values("entry_id"))
    if one := parameters.parse("mac", mac):
        rows = rows.filter(mac=one)
    if within := parameters.parse("ip", query.cidr):
        lookup = "address__net_contained_or_equal" if "/" in within else "address"
        rows = rows.filter(pk__in=places.filter(**{lookup: within}).values("entry_id"))
    for name in ("vm", "namespace"):
        if text := parameters.text(name):
            rows = rows.filter(**{name: text})
    if source := parameters.parse("source", query.choice(*EntrySource.values)):
        rows = rows.filter(source=source)
    if text := parameters.text("q"):
        rows = search.matching_entries(rows, text)
    return rows


def _body(request: Request) -> bytes:
    plain: HttpRequest = request._request
    if "chunked" in plain.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return parsing.body(request)
    if int(plain.META.get("CONTENT_LENGTH") or 0) > LARGEST:
        raise parsing.TooLarge
    return plain.body


def _require_json(request: Request) -> None:
    if parsing.media_type(request) != parsing.JSON:
        raise exceptions.UnsupportedMediaType(
            request.META.get("CONTENT_TYPE", ""), f"Send the body as {parsing.JSON}."
        )


def _whole_set(request: Request, raw: bytes, of: IPPool) -> list[core.EntrySpec]:
    """What a PUT says, in any of its shapes; keys that are there twice are two entries."""
    repeatable: Sequence[documents.Path] = ((), ("entries",), ippool.ENTRIES)
    if parsing.media_type(request) in _YAML:
        found = documents.load_yaml(raw, limit=LARGEST, repeatable=repeatable)
        if len(found) > 1:
            raise errors.InvalidInput.for_field("", "object_expected", "one document is expected")
        data: Any = found[0].data
    else:
        _require_json(request)
        data = documents.load_json_value(raw, limit=LARGEST, repeatable=repeatable)
    rules, field = ippools.rules(of.network), ""
    if isinstance(data, dict) and data.get("kind") == ippool.KIND:
        said = ippool.parse_strict(data)
        if said.network_name != of.network.name:
            message = f"the IPPool is that of {of.network.name}"
            at = "spec.network-name"
            raise errors.InvalidInput.for_field(at, "another_network", message, said.network_name)
        data, field = data["spec"].get("entries") or {}, "spec.entries"
    elif isinstance(data, dict) and "entries" in data:
        fields = object_reader.Fields(data, "", object_reader.ProblemReport())
        fields.only("entries")
        fields.report.raise_any()
        data, field = data["entries"], "entries"
    if isinstance(data, list) and not isinstance(data, object_reader.Repeated):
        return core.parse_list(data, rules, field=field)
    return core.parse_map(data, rules, field=field)


def _changed(body: object_reader.Fields, found: Entry) -> core.EntrySpec:
    rules = ippools.rules(found.ippool.network)
    named, ips = found.mac, tuple(found.ips)
    if body.has("mac"):
        named = body.parse("mac", lambda value, at: core.parse_mac(value, rules, at)) or ""
    if body.has("ips"):
        ips = body.parse("ips", lambda value, at: core.parse_ips(value, rules, at)) or ()
    vm, namespace, note = (core.optional(body, name) for name in ("vm", "namespace", "note"))
    body.report.raise_any()
    return core.EntrySpec(named, ips, vm, namespace, note)


def refuse(body: object_reader.Fields, names: Sequence[str]) -> None:
    """Report the fields that nobody sets."""
    for name in names:
        if name in body.data:
            body.report.add(name, "read_only_field", "is worked out and cannot be set")


# --- who may --------------------------------------------------------------------------------------


def _may_add(request: Request, of: IPPool, wanted: Sequence[core.EntrySpec]) -> str:
    """Where the entries come from: `request` when a VM owner asks for them."""
    if request.user.has_perm("claims.add_entry") and scoped.seen(request).everything:
        return EntrySource.API
    requests.check(request.user, of, wanted)
    return EntrySource.REQUEST


def _require_everything(request: Request) -> None:
    if not scoped.seen(request).everything:
        raise errors.NotAllowed(f"This needs the permission {namespaces.EVERY_NAMESPACE}.")


# --- what is answered -----------------------------------------------------------------------------


def _page(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("ippool_id", "mac", "ips", "vm", "namespace", "source", "note", "created_at")
    found = [Entry(pk=row["id"], **{name: row[name] for name in names}) for row in rows]
    return _shapes(request, found)


def _shapes(request: Request, found: Sequence[Entry]) -> list[dict[str, Any]]:
    told = duplicates.of_entries(found, scoped.seen(request))
    return [_shape(one, told.get(one.pk, ())) for one in found]


def _shape(one: Entry, told: Sequence[duplicates.Duplicate]) -> dict[str, Any]:
    return {
        "id": one.pk,
        "ippool": one.ippool_id,
        "mac": one.mac,
        "ips": list(one.ips),
        "vm": one.vm,
        "namespace": one.namespace,
        "source": one.source,
        "note": one.note,
        "created_at": block_fields.time(one.created_at),
        "duplicates": [duplicate.as_json() for duplicate in told],
        "warnings": [
            {"code": warning.code, "message": warning.message} for warning in core.warnings(one.ips)
        ],
    }


def _told(ippool_id: int, found: services.EntryDiff, count: int) -> dict[str, Any]:
    of = IPPool.objects.get(pk=ippool_id)
    return {
        "created": len(found.new),
        "changed": len(found.changed),
        "deleted": len(found.gone),
        "unchanged": count - len(found.new) - len(found.changed),
        "duplicates": {"mac": of.duplicate_macs, "ip": of.duplicate_ips},
        "conditions": of.conditions,
        "version": of.version,
    }
