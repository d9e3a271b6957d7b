"""Endpoints of IPPools: the addresses of MAC addresses on a network, with ETag and If-Match.

A VM owner sees that an IPPool exists, but not the fields about all namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims.access import namespaces
from claims.api import entries, manifests, scoped
from claims.api.schemas import ippools as ippool_schema
from claims.entries import entries as entry_services
from claims.entries import ippools
from claims.models import Entry, IPAMClaim, IPPool, Network
from pools.api import pools
from pools.core import block_fields, errors, holders
from pools.models import Cluster
from pools.platform import events, idempotency
from pools.platform.rest import pagination, parsing, query, views

_READ_ONLY = (
    "id",
    "network",
    "version",
    "conditions",
    "associated_nads",
    "problems",
    "duplicates",
    "entries",
    "follows_cluster",
    "gone_at",
    "created_at",
)


class IPPools(views.View):
    needs = {"GET": ("claims.view_ippool",), "POST": ("claims.add_ippool",)}

    @extend_schema(**ippool_schema.IPPOOLS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = scoped.rows(request, IPPool)
        if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
            rows = rows.filter(cluster=cluster)
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        if network := parameters.text("network_name"):
            rows = rows.filter(network__name=network)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("name", "id")},
                fields=ippool_schema.IPPOOL_FIELDS,
                shape=lambda page_rows: _page(request, page_rows),
            )
        )

    @extend_schema(**ippool_schema.IPPOOL_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, "cluster", "name", "network_name", "note", *_READ_ONLY)
        entries.refuse_fields(body, _READ_ONLY)
        cluster = body.parse("cluster", scoped.cluster_parser(request))
        name = body.parse("name", parsing.name)
        network = body.parse("network_name", _parse_network_name)
        note = body.parse("note", parsing.description) if body.has("note") else ""
        body.report.raise_any()

        def create() -> idempotency.Stored:
            ippool = ippools.create(
                cluster or Cluster(),
                name or "",
                network or "",
                note=note or "",
                author=_author(request),
            )
            return idempotency.Stored(201, shape(request, _get(request, ippool.pk)))

        stored = views.run_once(request, create)
        return views.answer(stored.answer, status=stored.status)


class IPPoolView(views.View):
    needs = {
        "GET": ("claims.view_ippool",),
        "PATCH": ("claims.change_ippool",),
        "DELETE": ("claims.delete_ippool",),
    }

    @extend_schema(**ippool_schema.IPPOOL)
    def get(self, request: Request, ippool_id: int) -> views.Answer:
        return _answer(request, ippool_id)

    @extend_schema(**ippool_schema.IPPOOL_PATCH)
    def patch(self, request: Request, ippool_id: int) -> views.Answer:
        ippool = _get(request, ippool_id)
        body = parsing.changes(request, "name", "note", "cluster", "network_name", *_READ_ONLY)
        entries.refuse_fields(body, _READ_ONLY)
        for field, current in (
            ("cluster", ippool.cluster.name),
            ("network_name", ippool.network.name),
        ):
            if field in body.data and body.data[field] != current:
                raise errors.ImmutableInUse(f"The {field} of an IPPool cannot be changed.")
        name = body.parse("name", parsing.name) if body.has("name") else None
        note = body.parse("note", parsing.description) if body.has("note") else None
        body.report.raise_any()
        ippools.change(
            ippool_id,
            name=name,
            note=note,
            author=_author(request),
            version=pools.version(request, ippool.version),
        )
        return _answer(request, ippool_id)

    @extend_schema(**ippool_schema.IPPOOL_DELETE)
    def delete(self, request: Request, ippool_id: int) -> views.Answer:
        ippool = _get(request, ippool_id)
        ippools.delete(
            ippool.pk, author=_author(request), version=pools.version(request, ippool.version)
        )
        return views.no_content()


class IPPoolManifest(views.View):
    needs = {"GET": ("claims.view_ippool", "claims.view_entry")}

    @extend_schema(**ippool_schema.IPPOOL_MANIFEST)
    def get(self, request: Request, ippool_id: int) -> views.Answer:
        output_format = manifests.requested_format(request)
        ippool = _get(request, ippool_id)
        everything = scoped.request_scope(request).everything
        rows = scoped.rows(request, Entry)
        manifest = ippools.manifest(ippool, rows=rows, status=everything)
        return manifests.answer(manifest, output_format)


class AddressesForMAC(views.View):
    """getIPsForMAC of the enhancement proposal: the addresses of a MAC address, by its entry or its claim."""

    needs = {"GET": ("claims.view_network", "claims.view_entry")}

    @extend_schema(**ippool_schema.ADDRESSES_FOR_MAC)
    def get(self, request: Request, network_id: int) -> views.Answer:
        parameters = query.Query(request)
        mac = parameters.parse("mac", entries.parse_mac_parameter)
        if mac is None and not parameters.report.problems:
            parameters.report.add("mac", "required", "name a MAC address")
        parameters.done()
        network = scoped.get_row(request, Network, network_id)
        return views.answer(_addresses_for_mac(request, network, mac or ""))


def _addresses_for_mac(request: Request, network: Network, mac: str) -> dict[str, Any]:
    entry = entry_services.find_by_mac(scoped.rows(request, Entry), network.pk, mac)
    if entry is not None:
        return _addresses(mac, entry.ips, "ippool", entry)
    claims = scoped.rows(request, IPAMClaim).filter(network=network, mac=mac, gone_at=None)
    for claim in claims.order_by("pk"):
        if ips := claim.ips or claim.ips_requested:
            return _addresses(mac, ips, "ipamclaim", claim)
    not_found = errors.NotFound(f"The network {network.name} has no addresses for {mac}.")
    not_found.code = "mac_not_found"
    raise not_found


def _addresses(
    mac: str, ips: Sequence[str], source: str, owner: Entry | IPAMClaim
) -> dict[str, Any]:
    return {
        "mac": mac,
        "ips": list(ips),
        "source": source,
        "vm": owner.vm,
        "namespace": owner.namespace,
    }


def _author(request: Request) -> events.Author:
    return views.author(request)


def _get(request: Request, ippool_id: int) -> IPPool:
    return scoped.get_row(request, IPPool.objects.select_related("cluster", "network"), ippool_id)


def _answer(request: Request, ippool_id: int) -> views.Answer:
    ippool_shape = shape(request, _get(request, ippool_id))
    headers = {"ETag": f'"{ippool_shape["version"]}"'} if ippool_shape["version"] else {}
    return views.answer(ippool_shape, headers=headers)


def shape(request: Request, ippool: IPPool) -> dict[str, Any]:
    """Return the representation of an IPPool for the request's user."""
    return _shapes(request, [ippool])[0]


def _page(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = [row["id"] for row in rows]
    ippools_by_id = IPPool.objects.select_related("cluster", "network").in_bulk(ids)
    return _shapes(request, [ippools_by_id[number] for number in ids if number in ippools_by_id])


def _shapes(request: Request, ippool_rows: Sequence[IPPool]) -> list[dict[str, Any]]:
    scope = scoped.request_scope(request)
    nads = ippools.associated_nads(ippool_rows, scope)
    rows = namespaces.visible(Entry.objects.filter(ippool__in=ippool_rows), scope)
    counts = dict(rows.order_by().values_list("ippool").annotate(Count("pk")))
    return [
        {
            "id": ippool.pk,
            "cluster": ippool.cluster.name,
            "name": ippool.name,
            "network": ippool.network_id,
            "network_name": ippool.network.name,
            "note": ippool.note,
            "entries": counts.get(ippool.pk, 0),
            "associated_nads": nads[ippool.pk],
            "follows_cluster": ippool.follows_cluster,
            "gone_at": block_fields.time(ippool.gone_at),
            "created_at": block_fields.time(ippool.created_at),
            **(_all_namespaces_fields(ippool) if scope.everything else _HIDDEN_FIELDS),
        }
        for ippool in ippool_rows
    ]


_HIDDEN_FIELDS: dict[str, Any] = {
    "conditions": [],
    "problems": [],
    "duplicates": None,
    "version": None,
}


def _all_namespaces_fields(ippool: IPPool) -> dict[str, Any]:
    return {
        "conditions": ippool.conditions,
        "problems": ippool.problems,
        "duplicates": {"mac": ippool.duplicate_macs, "ip": ippool.duplicate_ips},
        "version": ippool.version,
    }


def _parse_network_name(value: object, field_path: str) -> str:
    return holders.parse_identifier(value, field=field_path)


urlpatterns = [
    path("ippools/", IPPools.as_view(), name="ippools"),
    path("ippools/<int:ippool_id>/", IPPoolView.as_view(), name="ippool"),
    path("ippools/<int:ippool_id>/manifest/", IPPoolManifest.as_view(), name="ippool-manifest"),
    path("ippools/<int:ippool_id>/entries/", entries.Entries.as_view(), name="entries"),
    path(
        "ippools/<int:ippool_id>/entries/<int:entry_id>/", entries.EntryView.as_view(), name="entry"
    ),
    path(
        "networks/<int:network_id>/addresses-for-mac/",
        AddressesForMAC.as_view(),
        name="addresses-for-mac",
    ),
]
