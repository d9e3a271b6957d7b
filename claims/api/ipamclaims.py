"""Endpoints of claims: the address of each VM on a network, or why it has none; VM manifests."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from claims.access import namespaces
from claims.address_index import duplicates
from claims.api import entries, manifests, scoped
from claims.api.schemas import ipamclaims as schema
from claims.core import macs
from claims.ipamclaims import ipamclaims, search, states
from claims.ipamclaims.ipamclaims import ClaimSpec
from claims.models import IndexEntry, IPAMClaim, Network
from claims.workloads import vm_manifests
from pools.core import block_fields, errors, holders, object_reader
from pools.models import Cluster
from pools.platform import idempotency
from pools.platform.rest import pagination, parsing, query, views

_VIEW = ("claims.view_ipamclaim",)
_CHANGEABLE = ("mac", "ips_requested", "note")
_CREATABLE = ("cluster", "namespace", "network", "vm", "name", "interface", *_CHANGEABLE)
_READ_ONLY = tuple(name for name in schema.FIELDS if name not in _CREATABLE)


class IPAMClaims(views.View):
    # namespaces.require_request checks who may create a claim.
    needs = {"GET": _VIEW, "POST": _VIEW}  # the response contains the written claim

    @extend_schema(**schema.CLAIMS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = _filter(request, parameters, scoped.rows(request, IPAMClaim))
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("name", "id"), "vm": ("vm", "id")},
                fields=schema.FIELDS,
                shape=lambda page_rows: _page(request, page_rows),
                columns=("id", "name", "vm"),
            )
        )

    @extend_schema(**schema.CLAIM_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, *_CREATABLE, *_READ_ONLY)
        spec = _parse_spec(request, body)
        namespaces.require_request(request.user, spec.network.cluster_id, spec.namespace)

        def create() -> idempotency.Stored:
            claim = ipamclaims.create(
                spec, author=views.author(request), scope=_request_scope(request)
            )
            return idempotency.Stored(201, _shape_by_id(request, claim.pk))

        stored = views.run_once(request, create)
        return views.answer(stored.answer, status=stored.status)


class IPAMClaimView(views.View):
    needs = {"GET": _VIEW, "PATCH": _VIEW, "DELETE": _VIEW}

    @extend_schema(**schema.CLAIM)
    def get(self, request: Request, claim_id: int) -> views.Answer:
        return views.answer(_shape_by_id(request, claim_id))

    @extend_schema(**schema.CLAIM_PATCH)
    def patch(self, request: Request, claim_id: int) -> views.Answer:
        claim = _get_writable(request, claim_id)
        body = parsing.fields(request, *_CREATABLE, *_READ_ONLY)
        changes = _parse_change(body, claim)
        author = views.author(request)
        ipamclaims.change(claim.pk, changes, author=author, scope=_request_scope(request))
        return views.answer(_shape_by_id(request, claim_id))

    @extend_schema(**schema.CLAIM_DELETE)
    def delete(self, request: Request, claim_id: int) -> views.Answer:
        ipamclaims.delete(_get_writable(request, claim_id).pk, author=views.author(request))
        return views.no_content()


class IPAMClaimManifest(views.View):
    needs = {"GET": ("claims.view_ipamclaim",)}

    @extend_schema(**schema.CLAIM_MANIFEST)
    def get(self, request: Request, claim_id: int) -> views.Answer:
        output_format = manifests.requested_format(request)
        return manifests.answer(ipamclaims.manifest(_get(request, claim_id)), output_format)


class IPAMClaimRelease(views.View):
    needs = {"POST": ("claims.delete_ipamclaim",)}

    @extend_schema(**schema.CLAIM_RELEASE)
    def post(self, request: Request, claim_id: int) -> views.Answer:
        claim = _get(request, claim_id)
        body = parsing.fields(request, "reason")
        reason = body.parse("reason", parsing.reason) or ""
        body.report.raise_any()

        def release() -> idempotency.Stored:
            ipamclaims.release(claim.pk, author=views.author(request, reason))
            return idempotency.Stored(200, _shape_by_id(request, claim_id))

        return views.answer(views.run_once(request, release).answer)


class VMManifest(views.View):
    """Return the manifest of a VM. The POST writes nothing, so it needs only the permission to view."""

    needs = {"POST": ("claims.view_network",)}

    @extend_schema(**schema.VM_MANIFEST)
    def post(self, request: Request, network_id: int) -> views.Answer:
        output_format = manifests.requested_format(request)
        network = scoped.get_row(request, Network, network_id)
        body = parsing.fields(request, "vm", "namespace", "mac")
        vm = body.parse("vm", parsing.name) or ""
        namespace = body.parse("namespace", parsing.namespace) or ""
        mac = body.parse("mac", _parse_mac) if body.has("mac") else None
        body.report.raise_any()
        scope = scoped.request_scope(request)
        scope.require(network.cluster_id, namespace)
        manifest = vm_manifests.vm_manifest(
            network, vm=vm, namespace=namespace, mac=mac, scope=scope
        )
        return manifests.answer(manifest, output_format)


def _request_scope(request: Request) -> namespaces.Scope:
    """Return the scope in which a requested address must be free; operators may cause conflicts."""
    operator = request.user.has_perm("claims.add_ipamclaim")
    return namespaces.EVERYTHING if operator else namespaces.owner_scope(request.user)


def _get(request: Request, claim_id: int) -> IPAMClaim:
    return scoped.get_row(request, IPAMClaim.objects.select_related("cluster", "network"), claim_id)


def _get_writable(request: Request, claim_id: int) -> IPAMClaim:
    """Return a claim that the user may change; raise NotFound, or NotAllowed for a visible one."""
    claim = _get(request, claim_id)
    namespaces.require_request(request.user, claim.cluster_id, claim.namespace)
    return claim


# --- responses ------------------------------------------------------------------------------------


def _shape_by_id(request: Request, claim_id: int) -> dict[str, Any]:
    return _shapes(request, [_get(request, claim_id).pk])[0]


def _page(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return _shapes(request, [row["id"] for row in rows])


def _shapes(request: Request, ids: list[int]) -> list[dict[str, Any]]:
    rows = states.with_state(IPAMClaim.objects.select_related("cluster", "network"))
    claims_by_id = rows.in_bulk(ids)
    claims = [claims_by_id[pk] for pk in ids if pk in claims_by_id]
    duplicates_by_claim = duplicates.of_claims(claims, scoped.request_scope(request))
    codes = states.finding_codes(claims)
    answered = states.clusters_with_managed_claims({claim.cluster_id for claim in claims})
    return [
        _shape(
            claim,
            duplicates_by_claim.get(claim.pk, []),
            states.next_step(
                claim, codes.get(claim.pk, ()), claims_managed=claim.cluster_id in answered
            ),
        )
        for claim in claims
    ]


def _shape(
    claim: Any, claim_duplicates: list[duplicates.Duplicate], next_step: str
) -> dict[str, Any]:
    return {
        "id": claim.pk,
        "cluster": claim.cluster.name,
        "namespace": claim.namespace,
        "name": claim.name,
        "network": claim.network.name,
        "interface": claim.interface,
        "mac": claim.mac,
        "ips_requested": claim.ips_requested,
        "vm": claim.vm,
        "vm_uid": claim.vm_uid,
        "status": {
            "ips": claim.ips,
            "owner_pod": claim.owner_pod,
            "conditions": claim.conditions,
        },
        "pods": claim.pods,
        "state": claim.state,
        "next_step": next_step,
        "finalizers": claim.finalizers,
        "deleted_at": block_fields.time(claim.deleted_at),
        "follows_cluster": claim.follows_cluster,
        "in_cluster": bool(claim.uid),
        "given_back_at": block_fields.time(claim.gone_at),
        "note": claim.note,
        "duplicates": [duplicate.as_json() for duplicate in claim_duplicates],
        "created_at": block_fields.time(claim.created_at),
    }


# --- queries --------------------------------------------------------------------------------------


def _filter(
    request: Request, parameters: query.Query, rows: QuerySet[IPAMClaim]
) -> QuerySet[IPAMClaim]:
    if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
        rows = rows.filter(cluster=cluster)
    for name, column in _EXACT_FILTERS.items():
        if value := parameters.text(name):
            rows = rows.filter(**{column: value})
    if mac := parameters.parse("mac", entries.parse_mac_parameter):
        rows = rows.filter(mac=mac)
    if within := parameters.parse("ip", query.cidr):
        rows = rows.filter(pk__in=_claim_ids_in(within))
    if text := parameters.text("q"):
        rows = search.matching_claims(rows, text)
    if state := parameters.parse("state", query.choice(*states.STATES)):
        rows = states.with_state(rows).filter(state=state)
    return rows


_EXACT_FILTERS = {"network": "network__name", "namespace": "namespace", "vm": "vm", "name": "name"}


def _claim_ids_in(text: str) -> QuerySet[IndexEntry, Any]:
    lookup = "address__net_contained_or_equal" if "/" in text else "address"
    return IndexEntry.objects.filter(claim__isnull=False, **{lookup: text}).values("claim_id")


# --- bodies ---------------------------------------------------------------------------------------


def _parse_spec(request: Request, body: object_reader.Fields) -> ClaimSpec:
    _refuse_fields(body, _READ_ONLY)
    cluster = body.parse("cluster", scoped.cluster_parser(request))
    namespace = body.parse("namespace", parsing.namespace) or ""
    vm = body.parse("vm", parsing.name) or "" if body.has("vm") else ""
    name = body.parse("name", _parse_name) or "" if body.has("name") else ""
    if not (vm or body.has("name")):
        body.report.add("vm", "required", "name the VM")
    network = body.parse(
        "network", lambda value, field_path: _parse_network(request, cluster, value, field_path)
    )
    interface = body.parse("interface", _parse_interface) or "" if body.has("interface") else ""
    mac = body.parse("mac", _parse_mac) if body.has("mac") else None
    note = body.parse("note", parsing.description) or "" if body.has("note") else ""
    ips: tuple[str, ...] = ()
    if body.has("ips_requested") and network is not None:
        claim_network = network
        ips = (
            body.parse(
                "ips_requested",
                lambda value, field_path: ipamclaims.parse_ips(
                    value, claim_network, field=field_path
                ),
            )
            or ()
        )
    body.report.raise_any()
    return ClaimSpec(
        network=network or Network(),
        namespace=namespace,
        vm=vm,
        name=name,
        mac=mac,
        ips=ips,
        interface=interface,
        note=note,
    )


def _parse_network(
    request: Request, cluster: Cluster | None, value: object, field_path: str
) -> Network:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field_path, "wrong_type", "must be a text", value)
    rows = scoped.rows(request, Network).select_related("cluster")
    network = (
        rows.filter(cluster=cluster, name=value).first() if cluster and "\0" not in value else None
    )
    if network is None:
        message = "the cluster has no such network"
        raise errors.InvalidInput.for_field(field_path, "unknown_network", message, value)
    return network


def _parse_change(body: object_reader.Fields, claim: IPAMClaim) -> ipamclaims.ClaimChange:
    _refuse_fields(body, _READ_ONLY)
    immutable = {
        "cluster": claim.cluster.name,
        "namespace": claim.namespace,
        "name": claim.name,
        "network": claim.network.name,
        "vm": claim.vm,
        "interface": claim.interface,
    }
    for name, current in immutable.items():
        if name in body.data and body.data[name] != current:
            raise errors.ImmutableInUse(f"The {name} of a claim cannot be changed.")
    mac = None
    if "mac" in body.data:
        mac = "" if body.data["mac"] is None else body.parse("mac", _parse_mac)
    ips = None
    if "ips_requested" in body.data:
        ips = (
            ()
            if body.data["ips_requested"] is None
            else body.parse(
                "ips_requested",
                lambda value, field_path: ipamclaims.parse_ips(
                    value, claim.network, field=field_path
                ),
            )
        )
    note = None
    if "note" in body.data:
        note = body.parse("note", parsing.description)
    body.report.raise_any()
    return ipamclaims.ClaimChange(mac=mac, ips=ips, note=note)


def _refuse_fields(body: object_reader.Fields, names: tuple[str, ...]) -> None:
    for name in names:
        if name in body.data:
            body.report.add(name, "read_only_field", "is worked out and cannot be set")


def _parse_mac(value: object, field_path: str) -> str:
    return macs.parse_mac(value, field=field_path)


def _parse_name(value: object, field_path: str) -> str:
    try:
        return parsing.name(value, field_path)
    except errors.InvalidInput as error:
        if error.code != "k8s_name":
            raise
        # The name of the enhancement proposal, <vm>.<logical network name>, is often no valid object name.
        message = f"{error.message}; leave the name out to get the name that ipam-extensions uses, with dots"
        raise errors.InvalidInput.for_field(field_path, error.code, message, value) from error


def _parse_interface(value: object, field_path: str) -> str:
    return holders.parse_reason(value, field=field_path, max_length=253, required=False)


urlpatterns = [
    path("ipamclaims/", IPAMClaims.as_view(), name="ipamclaims"),
    path("ipamclaims/<int:claim_id>/", IPAMClaimView.as_view(), name="ipamclaim"),
    path(
        "ipamclaims/<int:claim_id>/manifest/",
        IPAMClaimManifest.as_view(),
        name="ipamclaim-manifest",
    ),
    path(
        "ipamclaims/<int:claim_id>/release/", IPAMClaimRelease.as_view(), name="ipamclaim-release"
    ),
    path("networks/<int:network_id>/vm-manifest/", VMManifest.as_view(), name="vm-manifest"),
]
