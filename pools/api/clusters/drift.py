"""clusters/{}/drift/{id}/{decision}/ and clusters/{}/nodes/: decisions on drift, blocks of nodes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api.clusters import clusters, observed
from pools.api.schemas import clusters as cluster_schema
from pools.cilium import pod_cidrs
from pools.clusters import drift, takeovers
from pools.core import errors
from pools.core.cilium import ciliumnode, podippool
from pools.models import Drift, ObservedObject
from pools.platform.rest import pagination, parsing, query, views


class DriftDecision(views.View):
    """`apply` and `adopt` apply to the whole object, `ignore` and `unignore` to the one field."""

    needs = {"POST": ("pools.change_drift",)}

    @extend_schema(**cluster_schema.DRIFT_DECISION)
    def post(self, request: Request, cluster: str, drift_id: int, decision: str) -> views.Answer:
        rows = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
        row = rows.select_related("cluster").first()
        if row is None or decision not in {"apply", "adopt", "ignore", "unignore"}:
            raise errors.NotFound("There is no such difference, or no such decision.")
        cluster_object = drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)
        pool_id = None
        if decision == "apply":
            remaining = drift.apply(cluster_object, author=views.author(request))
        elif decision == "adopt":
            for permission in drift.adopt_permissions(cluster_object.kind):
                views.require(request, permission)
            adopted = drift.adopt(cluster_object, author=views.author(request))
            pool_id = adopted if cluster_object.kind == podippool.KIND else None
            remaining = drift.differences(cluster_object)
        else:
            remaining = [_ignore(request, row) if decision == "ignore" else _unignore(request, row)]
        rows = Drift.objects.filter(pk__in=[difference.pk for difference in remaining])
        rows = rows.prefetch_related("ignored_by").order_by("path")
        differences = observed.DriftSerializer(rows, many=True).data
        return views.answer({"pool_id": pool_id, "differences": differences})


class Ownership(views.View):
    """Fields of an object that other field managers own, and the takeover of these fields."""

    needs = {"GET": ("pools.change_drift",), "POST": ("pools.change_drift",)}

    @extend_schema(**cluster_schema.OWNERSHIP)
    def get(self, request: Request, cluster: str, drift_id: int) -> views.Answer:
        cluster_object = _cluster_object(cluster, drift_id)
        return views.answer(
            _preview_shape(takeovers.preview(cluster_object, author=views.author(request)))
        )

    @extend_schema(**cluster_schema.OWNERSHIP_TAKE)
    def post(self, request: Request, cluster: str, drift_id: int) -> views.Answer:
        cluster_object = _cluster_object(cluster, drift_id)
        for permission in drift.adopt_permissions(cluster_object.kind):
            views.require(request, permission)
        body = parsing.fields(request, "token", "reason")
        token = body.parse("token", parsing.text)
        reason = body.parse("reason", parsing.reason)
        body.report.raise_any()
        author = views.author(request, reason or "")
        return views.answer(
            _preview_shape(takeovers.take_over(cluster_object, token=token or "", author=author))
        )


def _cluster_object(cluster: str, drift_id: int) -> drift.ClusterObject:
    rows = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
    row = rows.select_related("cluster").first()
    if row is None:
        raise errors.NotFound("There is no such difference.")
    return drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)


def _preview_shape(preview: takeovers.TakeoverPreview) -> dict[str, Any]:
    return {
        "kind": preview.cluster_object.kind,
        "namespace": preview.cluster_object.namespace,
        "name": preview.cluster_object.name,
        "resource_version": preview.resource_version,
        "token": preview.token,
        "fields": [
            {
                "path": owned_field.path,
                "desired": owned_field.desired,
                "observed": owned_field.observed,
                "managers": list(owned_field.managers),
            }
            for owned_field in preview.fields
        ],
    }


def _ignore(request: Request, row: Drift) -> Drift:
    body = parsing.fields(request, "reason")
    reason = body.parse("reason", parsing.reason)
    body.report.raise_any()
    author = views.author(request, reason or "")
    return drift.ignore(row, author=author, user=request.user)  # type: ignore[arg-type]  # logged in


def _unignore(request: Request, row: Drift) -> Drift:
    return drift.unignore(row, author=views.author(request))


class Nodes(views.View):
    needs = {"GET": ("pools.view_observedobject",)}

    @extend_schema(**cluster_schema.NODES)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        cluster_row = clusters.get(cluster)
        rows = ObservedObject.objects.filter(cluster=cluster_row, kind=ciliumnode.KIND)
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"name": ("name", "id")},
                fields=cluster_schema.NODE_FIELDS,
                shape=lambda page: _nodes(cluster_row.pk, page),
                default="name",
                columns=("id", "name"),
            )
        )


def _nodes(cluster_id: int, page: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes of a page in its order; a name that two objects share appears twice."""
    names = [row["name"] for row in page]
    if not names:
        return []
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=ciliumnode.KIND)
    before = rows.filter(name__lt=min(names)).order_by("-name").values_list("name", flat=True)
    # Between them may be a second object of the same name whose deletion is not yet confirmed.
    limit = rows.filter(name__gte=min(names), name__lte=max(names)).count()
    nodes = pod_cidrs.list_nodes(cluster_id, after=before.first() or "", limit=limit)
    by_name = {node.name: node for node in nodes}
    return [_shape(by_name[name]) for name in names if name in by_name]


def _shape(node: pod_cidrs.NodeAddresses) -> dict[str, Any]:
    return {
        "name": node.name,
        "uid": node.uid,
        "pools": [
            {
                "pool": node_pool.pool,
                "needed": _families(node_pool.needed),
                "usable": _families(node_pool.usable),
                "missing": _families(node_pool.missing),
                "cidrs": [str(cidr) for cidr in node_pool.cidrs],
            }
            for node_pool in node.pools
        ],
        "orphans": [{"pool": pool, "cidr": str(cidr)} for pool, cidr in node.orphans],
        "overlaps": [
            {"pool": pool, "cidr": str(cidr), "holder": holder}
            for pool, cidr, holder in node.overlaps
        ],
        "waiting": [str(cidr) for cidr in node.waiting],
        "error": node.error,
        "problem": node.problem,
    }


def _families(numbers: Any) -> dict[str, int]:
    return {f"ipv{family}": count for family, count in numbers.items()}
