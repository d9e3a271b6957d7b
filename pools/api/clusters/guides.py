"""Pool for a pod, node demand, Cilium readiness check, overlaps, and pools as YAML."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pools
from pools.api.clusters import clusters
from pools.api.clusters.guides_serializers import (
    ExplanationSerializer,
    NodeDemandSerializer,
    NodeForecastSerializer,
    OverlapListSerializer,
    PodDescriptionSerializer,
    PreflightSerializer,
)
from pools.cilium import configuration, pod_choice, pod_cidrs
from pools.core import addresses
from pools.core.cilium import pod_pool, podippool
from pools.platform.rest import generics, query, schema, views
from pools.register import manifests as pool_manifests, overlaps

YAML = "application/yaml"
_SEVERITIES = [severity.value for severity in overlaps.OverlapSeverity]
_SHAPES = [
    OpenApiParameter("shape", str, enum=list(pool_manifests.SHAPES)),
    OpenApiParameter("cluster", str, description="In the shape that this cluster takes."),
]


class PoolForPod(generics.GenericView):
    """Changes nothing, although the method is POST: the view permission is enough."""

    needs = {"POST": ("pools.view_pool",)}
    posts_a_question = True
    serializer_class = ExplanationSerializer

    @extend_schema(
        request=PodDescriptionSerializer,
        examples=schema.example(
            {
                "pod": {"name": "web-0", "labels": {"app": "web"}},
                "namespace": {
                    "name": "shop",
                    "annotations": {"ipam.cilium.io/ip-pool": "green-pool"},
                },
            },
            "a label of the pod",
        ),
    )
    def post(self, request: Request, cluster: str) -> Response:
        """The pool of each family that a pod gets its addresses from, and why."""
        values = self.read(request, PodDescriptionSerializer)
        cluster_row = clusters.get(cluster)
        explanation = pod_choice.explain(cluster_row, **values)
        return self.respond(
            {
                **vars(explanation),
                "cluster": cluster_row.name,
                "when": pod_pool.ONLY_AT_CREATION,
            }
        )


class NodeDemand(generics.GenericView):
    needs = {"POST": ("pools.view_pool",)}
    posts_a_question = True
    serializer_class = NodeForecastSerializer

    @extend_schema(
        request=NodeDemandSerializer,
        examples=schema.example(
            {
                "in_use": {"default": 12},
                "pending": {"default": {"ipv4": 1}},
                "pre_allocation": "default=8,other=4",
            },
            "twelve pods, and one that waits",
        ),
    )
    def post(self, request: Request, cluster: str) -> Response:
        """What a node will request, and which blocks it would get."""
        values = self.read(request, NodeDemandSerializer)
        return self.respond(pod_cidrs.forecast(clusters.get(cluster), **values))


class Preflight(generics.GenericView):
    needs = {"GET": ("pools.view_cluster", "pools.view_pool")}
    serializer_class = PreflightSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "release", str,
                description="Of Cilium, such as 1.18, if the cluster does not show it.",
            )
        ]
    )  # fmt: skip
    def get(self, request: Request, cluster: str) -> Response:
        """Whether a cluster is ready for Cilium's multi-pool mode."""
        release = self.parameters.text("release") or ""
        self.parameters.raise_problems()
        cluster_row = clusters.get(cluster)
        preflight = configuration.run_preflight(cluster_row, release=release)
        return self.respond({"cluster": cluster_row.name, "preflight": preflight})


class Overlaps(generics.GenericView):
    """Pages by the CIDR of the last overlap: overlaps are computed, and are rows of no table."""

    needs = {"GET": ("pools.view_pool",)}
    serializer_class = OverlapListSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter("cluster", str, description="Name or id."),
            OpenApiParameter("kind", str, enum=[kind.value for kind in overlaps.OverlapKind]),
            OpenApiParameter("severity", str, enum=_SEVERITIES),
            OpenApiParameter("within", str, description="That touch this CIDR."),
            OpenApiParameter("limit", int, description="1 to 1000 (100)."),
            OpenApiParameter("cursor", str, description="The cursor of a `next` link."),
        ]
    )
    def get(self, request: Request) -> Response:
        """Networks of several clusters or address spaces, or of objects of one cluster, that overlap."""
        parameters = self.parameters
        cluster = parameters.parse("cluster", lookups.cluster)
        kind = parameters.parse(
            "kind", query.choice(*(choice.value for choice in overlaps.OverlapKind))
        )
        severity = parameters.parse("severity", query.choice(*_SEVERITIES))
        within = parameters.parse("within", query.block)
        limit = parameters.parse("limit", query.integer(1, 1000)) or 100
        cursor = parameters.parse("cursor", query.block)
        parameters.raise_problems()
        all_overlaps = overlaps.find_overlaps(
            cluster_id=cluster.pk if cluster else None,
            kind=overlaps.OverlapKind(kind) if kind else None,
            within=addresses.parse_block(within) if within else None,
            severity=overlaps.OverlapSeverity(severity) if severity else None,
        )
        begin = _count_up_to(all_overlaps, addresses.parse_block(cursor)) if cursor else 0
        rest = all_overlaps[begin:]
        more = len(rest) > limit
        return self.respond(
            {
                "count": len(all_overlaps),
                "next": _next(request, rest[limit - 1]) if more else None,
                "results": rest[:limit],
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


class PoolManifest(generics.GenericView):
    needs = {"GET": ("pools.view_pool",)}
    problem_statuses = (502,)

    @extend_schema(responses={(200, YAML): str}, parameters=_SHAPES)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        """A pool as YAML."""
        pool = pools.get_pool(pool_id)
        return _yaml_answer(self.parameters, [pool_manifests.pool_manifest(pool)])


class ClusterManifest(generics.GenericView):
    needs = {"GET": ("pools.view_pool",)}
    problem_statuses = (502,)

    @extend_schema(responses={(200, YAML): str}, parameters=_SHAPES)
    def get(self, request: Request, cluster: str) -> views.Answer:
        """All pod pools of a cluster as YAML."""
        cluster_row = clusters.get(cluster)
        return _yaml_answer(self.parameters, configuration.pod_pools(cluster_row))


def _yaml_answer(parameters: query.Query, manifests: list[podippool.PodIPPool]) -> views.Answer:
    shape = parameters.parse("shape", query.choice(*pool_manifests.SHAPES))
    cluster = parameters.parse("cluster", lookups.cluster)
    if shape and cluster:
        parameters.report.add("cluster", "conflicting_fields", "name a shape or a cluster")
    parameters.raise_problems()
    if cluster:
        shape = pool_manifests.fetch_shape(cluster).value
    text = pool_manifests.render_yaml(manifests, shape or podippool.Shape.V2.value)
    return HttpResponse(text.encode(), content_type=YAML)
