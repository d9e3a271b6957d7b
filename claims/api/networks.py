"""Endpoints of logical networks: whether they can hold static VMs, and their manifests."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims.access import namespaces
from claims.api import manifests, scoped
from claims.api.schemas import networks as schema
from claims.core.networks import rules, udn
from claims.core.networks.route_advertisements import RouteAdvertisements
from claims.core.networks.static_vms import Reason
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.networks import manifests as network_manifests
from claims.networks import networks as services
from claims.networks import route_advertisements
from pools.core import block_fields, object_reader
from pools.platform import events, idempotency
from pools.platform.rest import pagination, parsing, query, views

_CREATABLE = ("cluster", *rules.FIELDS, "applied", "description", "nads")
_READ_ONLY = tuple(name for name in schema.FIELDS if name not in _CREATABLE)
_NULLABLE = {*_CREATABLE, *_READ_ONLY} - {"namespaces", "nads"}


class Networks(views.View):
    needs = {"GET": ("claims.view_network",), "POST": ("claims.add_network",)}

    @extend_schema(**schema.NETWORKS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = _filter(request, parameters, scoped.rows(request, Network))
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("name", "id")},
                fields=schema.FIELDS,
                shape=lambda page_rows: _page(request, page_rows),
                columns=("id", "name"),
            )
        )

    @extend_schema(**schema.NETWORK_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, *_CREATABLE, *_READ_ONLY)
        create = _creation_work(request, body)
        stored = views.run_once(request, create)
        return views.answer(stored.answer, status=stored.status)


class NetworkView(views.View):
    needs = {
        "GET": ("claims.view_network",),
        "PATCH": ("claims.change_network",),
        "DELETE": ("claims.delete_network",),
    }

    @extend_schema(**schema.NETWORK_ONE)
    def get(self, request: Request, network_id: int) -> views.Answer:
        return views.answer(_shape_by_id(request, network_id))

    @extend_schema(**schema.NETWORK_PATCH)
    def patch(self, request: Request, network_id: int) -> views.Answer:
        body = parsing.changes(request, *_CREATABLE, *_READ_ONLY, nullable=_NULLABLE)
        network = scoped.get_row(request, Network.objects.select_related("cluster"), network_id)
        nads = _parse_nads(body)
        changes, author = _parse_changes(body, network), views.author(request)
        with transaction.atomic():
            services.change(network, changes, author=author)
            if "nads" in body.data:
                services.set_nads(network, nads, author=author)
        return views.answer(_shape_by_id(request, network_id))

    @extend_schema(**schema.NETWORK_DELETE)
    def delete(self, request: Request, network_id: int) -> views.Answer:
        rows = Network.objects.select_related("cluster", "pool")
        services.delete(scoped.get_row(request, rows, network_id), author=views.author(request))
        return views.no_content()


class NetworkManifest(views.View):
    needs = {"GET": ("claims.view_network",)}

    @extend_schema(**schema.NETWORK_MANIFEST)
    def get(self, request: Request, network_id: int) -> views.Answer:
        output_format = manifests.requested_format(request)
        network = scoped.get_row(request, Network, network_id)
        if network.kind == NetworkKind.CUDN:  # its selector names other namespaces
            views.require(request, namespaces.EVERY_NAMESPACE)
        return manifests.answer(network_manifests.applicable_manifest(network), output_format)


# --- responses ------------------------------------------------------------------------------------


def _shape_by_id(request: Request, network_id: int) -> dict[str, Any]:
    network = scoped.get_row(request, _with_nads(request, Network.objects.all()), network_id)
    return _shape(
        network,
        route_advertisements.of_networks([network])[network.pk],
        access_all=scoped.request_scope(request).everything,
    )


def _page(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    networks_by_id = _with_nads(request, Network.objects.all()).in_bulk([row["id"] for row in rows])
    everything = scoped.request_scope(request).everything
    advertisements = route_advertisements.of_networks(networks_by_id.values())
    return [
        _shape(networks_by_id[row["id"]], advertisements[row["id"]], access_all=everything)
        for row in rows
        if row["id"] in networks_by_id
    ]


def _with_nads(request: Request, rows: QuerySet[Network]) -> QuerySet[Network]:
    return services.with_nads(rows, scoped.rows(request, NAD))


def _shape(
    network: Network, advertisements: list[RouteAdvertisements] | None, *, access_all: bool
) -> dict[str, Any]:
    """Return the representation of a network; `access_all` adds the fields about other namespaces."""
    visible_nads: list[NAD] = network.shown_nads  # type: ignore[attr-defined]  # `with_nads`
    check_result = services.static_vm_check(network, visible_nads)
    return {
        "id": network.pk,
        "cluster": network.cluster.name,
        "name": network.name,
        "kind": network.kind,
        "object_name": network.object_name,
        "namespace": network.namespace,
        "topology": network.topology,
        "role": network.role,
        "ipam_mode": network.ipam_mode,
        "lifecycle": network.lifecycle,
        "mtu": network.mtu,
        "subnets": network.subnets,
        "default_gateways": udn.gateways(network) or network.default_gateways,
        "gateways_configured": bool(network.default_gateways),
        "reserved_subnets": network.reserved_subnets,
        "infrastructure_subnets": network.infrastructure_subnets,
        "exclude_subnets": network.exclude_subnets,
        "join_subnets": network.join_subnets,
        "namespace_selector": network.namespace_selector if access_all else None,
        "nads": [
            {
                "namespace": nad.namespace,
                "name": nad.name,
                "role": nad.role,
                "allow_persistent_ips": nad.allow_persistent_ips,
            }
            for nad in visible_nads
        ],
        "static_vms": {
            "ok": check_result.ok,
            "reasons": list(map(_reason, check_result.reasons)),
            "notes": list(map(_reason, check_result.notes)),
        },
        "pool": network.pool_id if access_all else None,
        "applied": network.applied,
        "known": bool(network.kind),
        "follows_cluster": network.follows_cluster,
        "gone": network.gone_at is not None,
        "gone_at": block_fields.time(network.gone_at),
        "conditions": network.conditions if access_all else [],
        "route_advertisements": None
        if advertisements is None
        else [
            {"name": advertisement.name, "accepted": advertisement.accepted}
            for advertisement in advertisements
        ],
        "description": network.description,
        "created_at": block_fields.time(network.created_at),
    }


def _reason(reason: Reason) -> dict[str, str]:
    return {"code": reason.code, "message": reason.message, "remedy": reason.remedy}


# --- queries --------------------------------------------------------------------------------------


def _filter(
    request: Request, parameters: query.Query, rows: QuerySet[Network]
) -> QuerySet[Network]:
    if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
        rows = rows.filter(cluster=cluster)
    if name := parameters.text("name"):
        rows = rows.filter(name=name)
    if kind := parameters.parse("kind", query.choice("cudn", "udn", "nad")):
        rows = rows.filter(kind=kind)
    if namespace := parameters.text("namespace"):
        visible_nads = scoped.rows(request, NAD).filter(namespace=namespace)
        rows = rows.filter(Q(pk__in=visible_nads.values("network_id")) | Q(namespace=namespace))
    is_suitable = parameters.parse("static_vms", query.flag)
    if is_suitable is not None:
        suitable = services.fitting_query(scoped.rows(request, NAD))
        rows = rows.filter(suitable) if is_suitable else rows.exclude(suitable)
    if text := parameters.text("q"):
        rows = rows.filter(services.search(text))
    known_filter = parameters.parse("known", query.choice("true", "false", "all")) or "true"
    if known_filter != "all":
        rows = (
            rows.filter(kind=NetworkKind.UNKNOWN)
            if known_filter == "false"
            else rows.exclude(kind="")
        )
    return rows


# --- bodies ---------------------------------------------------------------------------------------


def _creation_work(request: Request, body: object_reader.Fields) -> Any:
    for name in _READ_ONLY:
        if name in body.data:
            body.report.add(name, "read_only_field", "is worked out and cannot be set")
    cluster = body.parse("cluster", scoped.cluster_parser(request))
    values = rules.parse_network(body)
    applied = body.flag("applied")
    if applied:
        values = rules.check_applied(body, values)
    description = _parse_description(body)
    nads = _parse_nads(body)
    body.report.raise_any()
    if cluster is None:
        raise AssertionError("a body without a cluster is refused")

    def create() -> idempotency.Stored:
        author: events.Author = views.author(request)
        network = services.create_network(
            cluster, values, author=author, applied=applied, description=description, nads=nads
        )
        return idempotency.Stored(201, _shape_by_id(request, network.pk))

    return create


def _parse_nads(body: object_reader.Fields) -> list[tuple[str, str]]:
    nad_names = []
    for fields in body.objects("nads") if body.has("nads") else ():
        fields.only("namespace", "name", "role", "allow_persistent_ips")
        namespace = fields.parse("namespace", parsing.namespace)
        name = fields.parse("name", parsing.name)
        if namespace and name:
            nad_names.append((namespace, name))
    return nad_names


def _parse_description(body: object_reader.Fields) -> str:
    if not body.has("description"):
        return ""
    return body.parse("description", parsing.description) or ""


def _parse_changes(body: object_reader.Fields, network: Network) -> dict[str, Any]:
    """Return the changed values; a value equal to the current one, in any notation, is no change."""
    current = _immutable_values(network)
    for name in _READ_ONLY:
        if name in body.data:
            body.report.add(name, "read_only_field", "is worked out and cannot be set")
    changes: dict[str, Any] = {
        name: value
        for name, value in body.data.items()
        if name in current and value not in current[name]
    }
    if body.has("description"):
        changes["description"] = _parse_description(body)
    if "applied" in body.data:
        changes["applied"] = body.flag("applied")
    if body.has("namespace_selector") or body.has("namespaces"):
        changes["namespace_selector"] = rules.selector(body, network.kind)
    body.report.raise_any()
    return changes


def _immutable_values(network: Network) -> dict[str, list[Any]]:
    """Return the accepted notations of each value that cannot be changed."""
    current: dict[str, list[Any]] = {
        name: [getattr(network, name)]
        for name in rules.FIELDS
        if name not in {"namespace_selector", "namespaces"}
    }
    current["default_gateways"].append(udn.gateways(network))
    return current | {"cluster": [network.cluster.name, network.cluster_id]}


urlpatterns = [
    path("networks/", Networks.as_view(), name="networks"),
    path("networks/<int:network_id>/", NetworkView.as_view(), name="network"),
    path("networks/<int:network_id>/manifest/", NetworkManifest.as_view(), name="network-manifest"),
]
