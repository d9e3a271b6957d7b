"""clusters/{}/drift/{id}/{decision}/ and clusters/{}/nodes/: what is decided, what nodes hold."""

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
    """apply and adopt are of the whole object, ignore and unignore of the one field."""

    needs = {"POST": ("pools.change_drift",)}

    @extend_schema(**cluster_schema.DRIFT_DECISION)
    def post(self, request: Request, cluster: str, drift_id: int, decision: str) -> views.Answer:
        found = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
        row = found.select_related("cluster").first()
        if row is None or decision not in {"apply", "adopt", "ignore", "unignore"}:
            raise errors.NotFound("There is no such difference, or no such decision.")
        of = drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)
        pool_id = None
        if decision == "apply":
            left = drift.apply(of, author=views.author(request))
        elif decision == "adopt":
            for permission in drift.adopt_permissions(of.kind):
                views.require(request, permission)
            adopted = drift.adopt(of, author=views.author(request))
            pool_id = adopted if of.kind == podippool.KIND else None
            left = drift.differences(of)
        else:
            left = [_ignored(request, row) if decision == "ignore" else _unignored(request, row)]
        values = Drift.objects.filter(pk__in=[one.pk for one in left]).order_by("path").values()
        told = observed.shapes([dict(one) for one in values])
        return views.answer({"pool_id": pool_id, "differences": told})


class Ownership(views.View):
    """What other managers own of an object that waits for them, and taking that over."""

    needs = {"GET": ("pools.change_drift",), "POST": ("pools.change_drift",)}

    @extend_schema(**cluster_schema.OWNERSHIP)
    def get(self, request: Request, cluster: str, drift_id: int) -> views.Answer:
        of = _object(cluster, drift_id)
        return views.answer(_preview(takeovers.preview(of, author=views.author(request))))

    @extend_schema(**cluster_schema.OWNERSHIP_TAKE)
    def post(self, request: Request, cluster: str, drift_id: int) -> views.Answer:
        of = _object(cluster, drift_id)
        for permission in drift.adopt_permissions(of.kind):
            views.require(request, permission)
        body = parsing.fields(request, "token", "reason")
        token = body.parse("token", parsing.text)
        reason = body.parse("reason", parsing.reason)
        body.report.raise_any()
        author = views.author(request, reason or "")
        return views.answer(_preview(takeovers.take_over(of, token=token or "", author=author)))


def _object(cluster: str, drift_id: int) -> drift.ClusterObject:
    found = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
    row = found.select_related("cluster").first()
    if row is None:
        raise errors.NotFound("There is no such difference.")
    return drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)


def _preview(found: takeovers.TakeoverPreview) -> dict[str, Any]:
    return {
        "kind": found.cluster_object.kind,
        "namespace": found.cluster_object.namespace,
        "name": found.cluster_object.name,
        "resource_version": found.resource_version,
        "token": found.token,
        "fields": [
            {
                "path": one.path,
                "desired": one.desired,
                "observed": one.observed,
                "managers": list(one.managers),
            }
            for one in found.fields
        ],
    }


def _ignored(request: Request, row: Drift) -> Drift:
    body = parsing.fields(request, "reason")
    reason = body.parse("reason", parsing.reason)
    body.report.raise_any()
    author = views.author(request, reason or "")
    return drift.ignore(row, author=author, user=request.user)  # type: ignore[arg-type]  # logged in


def _unignored(request: Request, row: Drift) -> Drift:
    return drift.unignore(row, author=views.author(request))


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
    found = pod_cidrs.list_nodes(cluster_id, after=before.first() or "", limit=limit)
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
