"""clusters/{}/drift/{id}/{decision}/ and clusters/{}/nodes/: what is decided, what nodes hold."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import cluster_parts, cluster_schema, clusters, pagination, parsing, query, views
from pools.core import ciliumnode, errors, podippool
from pools.models import Drift, ObservedObject
from pools.services import drift, pod_cidrs


class DriftDecision(views.View):
    """apply and adopt are of the whole object, ignore and heed of the one field."""

    needs = {"POST": ("pools.change_drift",)}

    @extend_schema(**cluster_schema.DRIFT_DECISION)
    def post(self, request: Request, cluster: str, drift_id: int, decision: str) -> views.Answer:
        found = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
        row = found.select_related("cluster").first()
        if row is None or decision not in {"apply", "adopt", "ignore", "heed"}:
            raise errors.NotFound("There is no such difference, or no such decision.")
        of = drift.Object(row.cluster, row.kind, row.name, row.namespace)
        pool_id = None
        if decision == "apply":
            left = drift.apply(of, by=views.author(request))
        elif decision == "adopt":
            for permission in drift.adopting(of.kind):
                views.require(request, permission)
            adopted = drift.adopt(of, by=views.author(request))
            pool_id = adopted if of.kind == podippool.KIND else None
            left = drift.differences(of)
        else:
            left = [_ignored(request, row) if decision == "ignore" else _heeded(request, row)]
        values = Drift.objects.filter(pk__in=[one.pk for one in left]).order_by("path").values()
        told = cluster_parts.shapes([dict(one) for one in values])
        return views.answer({"pool_id": pool_id, "differences": told})


def _ignored(request: Request, row: Drift) -> Drift:
    body = parsing.fields(request, "reason")
    reason = body.parse("reason", parsing.reason)
    body.report.raise_any()
    by = views.author(request, reason or "")
    return drift.ignore(row, by=by, user=request.user)  # type: ignore[arg-type]  # logged in


def _heeded(request: Request, row: Drift) -> Drift:
    return drift.heed(row, by=views.author(request))


class Nodes(views.View):
    needs = {"GET": ("pools.view_observedobject",)}

    @extend_schema(**cluster_schema.NODES)
    def get(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        found = clusters.get(cluster)
        rows = ObservedObject.objects.filter(cluster=found, kind=ciliumnode.KIND)
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"name": ("name", "id")},
                fields=cluster_schema.NODE_FIELDS,
                shape=lambda page: _nodes(found.pk, page),
                default="name",
                columns=("id", "name"),
            )
        )


def _nodes(cluster_id: int, page: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes of a page, in its order; a name that two objects have is told for both."""
    names = [row["name"] for row in page]
    if not names:
        return []
    rows = ObservedObject.objects.filter(cluster_id=cluster_id, kind=ciliumnode.KIND)
    before = rows.filter(name__lt=min(names)).order_by("-name").values_list("name", flat=True)
    # A second object of a name, not yet known to be gone, may stand between them.
    limit = rows.filter(name__gte=min(names), name__lte=max(names)).count()
    found = pod_cidrs.nodes(cluster_id, after=before.first() or "", limit=limit)
    by_name = {node.name: node for node in found}
    return [_shape(by_name[name]) for name in names if name in by_name]


def _shape(node: pod_cidrs.NodeAddresses) -> dict[str, Any]:
    return {
        "name": node.name,
        "uid": node.uid,
        "pools": [
            {
                "pool": one.pool,
                "needed": _families(one.needed),
                "usable": _families(one.usable),
                "missing": _families(one.missing),
                "cidrs": [str(cidr) for cidr in one.cidrs],
            }
            for one in node.pools
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
