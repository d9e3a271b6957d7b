"""Pool for a pod, node demand, Cilium readiness check, overlaps, and pools as YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups, pools
from pools.api.clusters import clusters
from pools.api.schemas import guides
from pools.cilium import configuration, exports, node_demand, pod_choice, preflights
from pools.core import addresses, errors, holders, object_reader
from pools.core.cilium import multipool, pod_pool, podippool
from pools.core.cilium.preflight import PreflightFinding
from pools.platform.rest import parsing, query, views
from pools.register import overlaps

YAML = "application/yaml"
MEMBERS = 100  # listed members of one overlap
LONGEST_MAP = 4096  # characters of ipam.cilium.io/pre-allocation


class PoolForPod(views.View):
    """Changes nothing, although the method is POST: the view permission is enough."""

    needs = {"POST": ("pools.view_pool",)}

    @extend_schema(**guides.POOL_FOR_POD)
    def post(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, "pod", "namespace")
        pod, namespace = _object_description(body, "pod"), _object_description(body, "namespace")
        body.report.raise_any()
        cluster_row = clusters.get(cluster)
        explanation = pod_choice.explain(cluster_row, pod=pod, namespace=namespace)
        return views.answer(
            {
                "cluster": cluster_row.name,
                "default_pool": explanation.default,
                "default_pool_assumed": explanation.assumed,
                "pod_seen": explanation.pod_seen,
                "namespace_seen": explanation.namespace_seen,
                "notes": list(explanation.notes),
                "when": pod_pool.ONLY_AT_CREATION,
                "choices": [
                    {
                        "family": explained.choice.family,
                        "pool": explained.choice.pool,
                        "pool_id": explained.pool.pk if explained.pool else None,
                        "free": str(explained.usage.free) if explained.usage else None,
                        "reasons": list(explained.choice.reasons),
                        "problem": explained.choice.problem,
                        "unknown": list(explained.choice.unknown),
                    }
                    for explained in explanation.chosen
                ],
            }
        )


def _object_description(body: object_reader.Fields, key: str) -> pod_choice.ObjectDescription:
    if not body.has(key):
        body.report.add(body.path(key), "required", "is required")
        return pod_choice.ObjectDescription("")
    part = body.section(key)
    part.only("name", "labels", "annotations")
    return pod_choice.ObjectDescription(
        part.parse("name", parsing.name) or "",
        part.string_map("labels") if part.has("labels") else None,
        part.string_map("annotations") if part.has("annotations") else None,
    )


class NodeDemand(views.View):
    needs = {"POST": ("pools.view_pool",)}

    @extend_schema(**guides.NODE_DEMAND)
    def post(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, "node", "in_use", "pending", "pre_allocation")
        node = body.parse("node", parsing.name) or "" if body.has("node") else ""
        in_use, pending = _numbers_by_pool(body, "in_use"), _numbers_by_pool(body, "pending")
        pre_allocation = None
        if body.has("pre_allocation"):
            pre_allocation = body.parse("pre_allocation", _pre_allocation)
        body.report.raise_any()
        demand = node_demand.forecast(
            clusters.get(cluster),
            in_use=in_use,
            pending=pending,
            pre_allocation=pre_allocation,
            node=node,
        )
        return views.answer(
            {
                "node": demand.node,
                "known": demand.exists,
                "pre_allocation": dict(demand.pre_allocation),
                "pre_allocation_assumed": demand.assumed,
                "requests": [_need_shape(need) for need in demand.needs],
                "errors": list(demand.errors),
            }
        )


def _pre_allocation(value: object, field: str) -> dict[str, int]:
    if isinstance(value, str) and len(value) > LONGEST_MAP:
        message = f"may have at most {LONGEST_MAP} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message, value)
    return multipool.parse_pre_allocation(value, field=field)


def _numbers_by_pool(body: object_reader.Fields, key: str) -> dict[str, dict[int, int]]:
    """Return the number of addresses by pool and IP family.

    The body has an object with `ipv4` and `ipv6` for each pool, or one number for both families.
    """
    part = body.section(key)
    numbers: dict[str, dict[int, int]] = {}
    for name, value in part.data.items():
        path = part.path(name)
        with body.report.collecting():
            holders.parse_name(name, field=path)
            if isinstance(value, dict):
                families = object_reader.Fields(value, path, body.report)
                families.only("ipv4", "ipv6")
                numbers[name] = {
                    family: _count(value.get(f"ipv{family}", 0), families.path(f"ipv{family}"))
                    for family in (4, 6)
                }
            else:
                numbers[name] = dict.fromkeys((4, 6), _count(value, path))
    return numbers


def _count(value: object, field: str) -> int:
    return parsing.integer(value, field, least=0, most=multipool.MOST_PRE_ALLOCATED)


def _need_shape(need: node_demand.PoolNeed) -> dict[str, Any]:
    return {
        "pool": need.pool,
        "family": need.family,
        "in_use": need.in_use,
        "pending": need.pending,
        "pre_allocated": need.pre_allocated,
        "needed": need.needed,
        "held": need.held,
        "missing": need.missing,
        "blocks": [str(block) for block in need.blocks],
        "problem": need.problem,
    }


class Preflight(views.View):
    needs = {"GET": ("pools.view_cluster", "pools.view_pool")}

    @extend_schema(**guides.PREFLIGHT)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        release = parameters.text("release") or ""
        parameters.done()
        cluster_row = clusters.get(cluster)
        preflight = preflights.run_preflight(cluster_row, release=release)
        return views.answer(
            {
                "cluster": cluster_row.name,
                "verdict": preflight.result.value,
                "config_unknown": preflight.why_not,
                "release": preflight.release,
                "pools": preflight.pools,
                "nodes": preflight.nodes,
                "findings": [
                    finding(preflight_finding) for preflight_finding in preflight.findings
                ],
            }
        )


def finding(preflight_finding: PreflightFinding) -> dict[str, Any]:
    return {
        "rule": preflight_finding.rule,
        "verdict": preflight_finding.result.value,
        "found": preflight_finding.observation,
        "advice": preflight_finding.advice,
    }


class Overlaps(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.OVERLAPS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        cluster = parameters.parse("cluster", lookups.cluster)
        kind = parameters.parse(
            "kind", query.choice(*(choice.value for choice in overlaps.OverlapKind))
        )
        within = parameters.parse("within", query.block)
        limit = parameters.parse("limit", query.integer(1, 1000)) or 100
        cursor = parameters.parse("cursor", query.block)
        parameters.done()
        all_overlaps = overlaps.find_overlaps(
            cluster_id=cluster.pk if cluster else None,
            kind=overlaps.OverlapKind(kind) if kind else None,
            within=addresses.parse_block(within) if within else None,
        )
        begin = _count_up_to(all_overlaps, addresses.parse_block(cursor)) if cursor else 0
        rest = all_overlaps[begin:]
        more = len(rest) > limit
        return views.answer(
            {
                "count": len(all_overlaps),
                "next": _next(request, rest[limit - 1]) if more else None,
                "results": [_overlap_shape(overlap) for overlap in rest[:limit]],
            }
        )


def _count_up_to(rows: Sequence[overlaps.Overlap], cursor: addresses.Network) -> int:
    """Return how many overlaps begin at or before the cursor; they are disjoint and sorted."""
    end = (cursor.version, int(cursor.network_address))
    return sum((overlap.cidr.version, int(overlap.cidr.network_address)) <= end for overlap in rows)


def _next(request: Request, last: overlaps.Overlap) -> str:
    parameters = request.query_params.copy()
    parameters["cursor"] = str(last.cidr)
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def _overlap_shape(overlap: overlaps.Overlap) -> dict[str, Any]:
    return {
        "cidr": str(overlap.cidr),
        "kinds": sorted(kind.value for kind in overlap.kinds),
        "clusters": len(overlap.clusters),
        "members_in_all": len(overlap.members),
        "members": [
            {
                "cidr": str(network),
                "cluster": owner.cluster,
                "space": owner.space,
                "category": owner.category,
                "pool": owner.pool,
                "pool_id": owner.pool_id,
            }
            for network, owner in overlap.members[:MEMBERS]
        ],
    }


class PoolManifest(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.POOL_MANIFEST)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        pool = pools.get_pool(pool_id)
        return _yaml_answer(request, [exports.pool_manifest(pool)])


class ClusterManifest(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.CLUSTER_MANIFEST)
    def get(self, request: Request, cluster: str) -> views.Answer:
        cluster_row = clusters.get(cluster)
        return _yaml_answer(request, configuration.pod_pools(cluster_row))


def _yaml_answer(request: Request, manifests: list[podippool.PodIPPool]) -> views.Answer:
    parameters = query.Query(request)
    shape = parameters.parse("shape", query.choice(*exports.SHAPES))
    cluster = parameters.parse("cluster", lookups.cluster)
    if shape and cluster:
        parameters.report.add("cluster", "conflicting_fields", "name a shape or a cluster")
    parameters.done()
    if cluster:
        shape = exports.fetch_shape(cluster).value
    text = exports.render_yaml(manifests, shape or podippool.Shape.V2.value)
    return HttpResponse(text.encode(), content_type=YAML)
