"""What a cluster's pools mean for a pod or a node; preflight; overlaps; pools as YAML."""

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
MEMBERS = 100  # of one overlap that are listed
LONGEST_MAP = 4096


class PoolForPod(views.View):
    """A question, although it is asked by POST: it needs the right to look only."""

    needs = {"POST": ("pools.view_pool",)}

    @extend_schema(**guides.POOL_FOR_POD)
    def post(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, "pod", "namespace")
        pod, namespace = _marked(body, "pod"), _marked(body, "namespace")
        body.report.raise_any()
        found = clusters.get(cluster)
        told = pod_choice.explain(found, pod=pod, namespace=namespace)
        return views.answer(
            {
                "cluster": found.name,
                "default_pool": told.default,
                "default_pool_assumed": told.assumed,
                "pod_seen": told.pod_seen,
                "namespace_seen": told.namespace_seen,
                "notes": list(told.notes),
                "when": pod_pool.ONLY_AT_CREATION,
                "choices": [
                    {
                        "family": one.choice.family,
                        "pool": one.choice.pool,
                        "pool_id": one.pool.pk if one.pool else None,
                        "free": str(one.usage.free) if one.usage else None,
                        "reasons": list(one.choice.reasons),
                        "problem": one.choice.problem,
                        "unknown": list(one.choice.unknown),
                    }
                    for one in told.chosen
                ],
            }
        )


def _marked(body: object_reader.Fields, key: str) -> pod_choice.ObjectDescription:
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
        in_use, pending = _numbers(body, "in_use"), _numbers(body, "pending")
        pre_allocation = None
        if body.has("pre_allocation"):
            pre_allocation = body.parse("pre_allocation", _pre_allocation)
        body.report.raise_any()
        told = node_demand.forecast(
            clusters.get(cluster),
            in_use=in_use,
            pending=pending,
            pre_allocation=pre_allocation,
            node=node,
        )
        return views.answer(
            {
                "node": told.node,
                "known": told.exists,
                "pre_allocation": dict(told.pre_allocation),
                "pre_allocation_assumed": told.assumed,
                "requests": [_asked(one) for one in told.needs],
                "errors": list(told.errors),
            }
        )


def _pre_allocation(value: object, at: str) -> dict[str, int]:
    if isinstance(value, str) and len(value) > LONGEST_MAP:
        message = f"may have at most {LONGEST_MAP} characters"
        raise errors.InvalidInput.for_field(at, "too_long", message, value)
    return multipool.parse_pre_allocation(value, field=at)


def _numbers(body: object_reader.Fields, key: str) -> dict[str, dict[int, int]]:
    """Addresses by pool: of each family apart, or one number for both."""
    part = body.section(key)
    found: dict[str, dict[int, int]] = {}
    for name, value in part.data.items():
        at = part.path(name)
        with body.report.collecting():
            holders.parse_name(name, field=at)
            if isinstance(value, dict):
                families = object_reader.Fields(value, at, body.report)
                families.only("ipv4", "ipv6")
                found[name] = {
                    family: _count(value.get(f"ipv{family}", 0), families.path(f"ipv{family}"))
                    for family in (4, 6)
                }
            else:
                found[name] = dict.fromkeys((4, 6), _count(value, at))
    return found


def _count(value: object, at: str) -> int:
    return parsing.integer(value, at, least=0, most=multipool.MOST_PRE_ALLOCATED)


def _asked(one: node_demand.PoolNeed) -> dict[str, Any]:
    return {
        "pool": one.pool,
        "family": one.family,
        "in_use": one.in_use,
        "pending": one.pending,
        "pre_allocated": one.pre_allocated,
        "needed": one.needed,
        "held": one.held,
        "missing": one.missing,
        "blocks": [str(block) for block in one.blocks],
        "problem": one.problem,
    }


class Preflight(views.View):
    needs = {"GET": ("pools.view_cluster", "pools.view_pool")}

    @extend_schema(**guides.PREFLIGHT)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        release = parameters.text("release") or ""
        parameters.done()
        found = clusters.get(cluster)
        told = preflights.run_preflight(found, release=release)
        return views.answer(
            {
                "cluster": found.name,
                "verdict": told.result.value,
                "config_unknown": told.why_not,
                "release": told.release,
                "pools": told.pools,
                "nodes": told.nodes,
                "findings": [finding(one) for one in told.findings],
            }
        )


def finding(one: PreflightFinding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "verdict": one.result.value,
        "found": one.observation,
        "advice": one.advice,
    }


class Overlaps(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.OVERLAPS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        cluster = parameters.parse("cluster", lookups.cluster)
        kind = parameters.parse("kind", query.choice(*(one.value for one in overlaps.OverlapKind)))
        within = parameters.parse("within", query.block)
        limit = parameters.parse("limit", query.integer(1, 1000)) or 100
        cursor = parameters.parse("cursor", query.block)
        parameters.done()
        found = overlaps.find_overlaps(
            cluster_id=cluster.pk if cluster else None,
            kind=overlaps.OverlapKind(kind) if kind else None,
            within=addresses.parse_block(within) if within else None,
        )
        begin = _after(found, addresses.parse_block(cursor)) if cursor else 0
        rest = found[begin:]
        more = len(rest) > limit
        return views.answer(
            {
                "count": len(found),
                "next": _next(request, rest[limit - 1]) if more else None,
                "results": [_overlap(one) for one in rest[:limit]],
            }
        )


def _after(found: Sequence[overlaps.Overlap], cursor: addresses.Network) -> int:
    """How many of them come before the cursor's end: overlaps lie apart, in order."""
    end = (cursor.version, int(cursor.network_address))
    return sum((one.cidr.version, int(one.cidr.network_address)) <= end for one in found)


def _next(request: Request, last: overlaps.Overlap) -> str:
    parameters = request.query_params.copy()
    parameters["cursor"] = str(last.cidr)
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def _overlap(one: overlaps.Overlap) -> dict[str, Any]:
    return {
        "cidr": str(one.cidr),
        "kinds": sorted(kind.value for kind in one.kinds),
        "clusters": len(one.clusters),
        "members_in_all": len(one.members),
        "members": [
            {
                "cidr": str(network),
                "cluster": owner.cluster,
                "space": owner.space,
                "category": owner.category,
                "pool": owner.pool,
                "pool_id": owner.pool_id,
            }
            for network, owner in one.members[:MEMBERS]
        ],
    }


class PoolManifest(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.POOL_MANIFEST)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        pool = pools.get(pool_id)
        return _yaml(request, [exports.pool_manifest(pool)])


class ClusterManifest(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guides.CLUSTER_MANIFEST)
    def get(self, request: Request, cluster: str) -> views.Answer:
        found = clusters.get(cluster)
        return _yaml(request, configuration.pod_pools(found))


def _yaml(request: Request, manifests: list[podippool.PodIPPool]) -> views.Answer:
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
