"""Pool for a pod, node demand, Cilium readiness check, overlaps, and pools as YAML."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.clusters import clusters
from pools.cilium import configuration, pod_choice, pod_cidrs
from pools.core import addresses, errors, holders, object_reader
from pools.core.cilium import multipool, pod_pool, podippool
from pools.core.cilium.preflight import RuleResult
from pools.platform.rest import fields, filters, generics, keyset, parsing, schema
from pools.platform.rest.serializers import Representation, Serializer
from pools.register import manifests as pool_manifests, overlaps

MEMBERS = 100  # listed members of one overlap
LONGEST_MAP = 4096  # characters of ipam.cilium.io/pre-allocation
_NUMBER = {"type": "integer", "minimum": 0, "maximum": multipool.MOST_PRE_ALLOCATED}
_NUMBERS = {
    "type": "object",
    "additionalProperties": {
        "oneOf": [
            _NUMBER,
            {"type": "object", "properties": {"ipv4": _NUMBER, "ipv6": _NUMBER}},
        ]
    },
}


class ObjectDescriptionSerializer(Serializer):
    """A pod or a namespace; labels and annotations that are absent are read from the cluster."""

    name = fields.NameField()
    labels = fields.StringMapField(required=False, default=None)
    annotations = fields.StringMapField(required=False, default=None)

    def validate(self, attrs: dict[str, Any]) -> Any:
        return pod_pool.ObjectMetadata(**attrs)


class PodDescriptionSerializer(Serializer):
    """A pod and its namespace."""

    pod = ObjectDescriptionSerializer()
    namespace = ObjectDescriptionSerializer()


class FamilyChoiceSerializer(Representation):
    """The pool of one family; `unknown` lists what was not read and can change the result."""

    family = fields.IntegerField(source="choice.family")
    pool = fields.TextField(source="choice.pool")
    pool_id = fields.IntegerField(source="pool.pk", allow_null=True)
    free = fields.CountField(source="usage.free", allow_null=True)
    reasons = fields.ListField(child=fields.TextField(), source="choice.reasons")
    problem = fields.TextField(source="choice.problem")
    unknown = fields.ListField(child=fields.TextField(), source="choice.unknown")


class ExplanationSerializer(Representation):
    """The pools that a pod gets its addresses from, with the reasons."""

    cluster = fields.TextField()
    default_pool = fields.TextField(source="default")
    default_pool_assumed = fields.TextField(source="assumed")
    pod_seen = fields.FlagField()
    namespace_seen = fields.FlagField()
    notes = fields.ListField(child=fields.TextField())
    when = fields.TextField()
    choices = fields.ListField(child=FamilyChoiceSerializer(), source="chosen")


class PoolNumbersField(fields.ParsedField):
    """Numbers of addresses by pool: one for both families, or an object of `ipv4` and `ipv6`."""

    def to_internal_value(self, data: Any) -> dict[str, dict[int, int]]:
        if not isinstance(data, dict):
            raise errors.InvalidInput.for_field("", "wrong_type", "an object is expected", data)
        report = object_reader.ProblemReport()
        numbers = {}
        for name, value in data.items():
            with report.collect(name):
                holders.parse_name(name, field="")
                numbers[name] = _family_numbers(value)
        report.raise_any()
        return numbers


def _family_numbers(value: object) -> dict[int, int]:
    if not isinstance(value, dict):
        return dict.fromkeys((4, 6), _count(value, ""))
    report = object_reader.ProblemReport()
    object_reader.Fields(value, "", report).allow_only("ipv4", "ipv6")
    numbers = {}
    for family in (4, 6):
        with report.collect():
            numbers[family] = _count(value.get(f"ipv{family}", 0), f"ipv{family}")
    report.raise_any()
    return numbers


def _count(value: object, field: str) -> int:
    return parsing.integer(value, field, least=0, most=multipool.MOST_PRE_ALLOCATED)


def _pre_allocation(value: object, field: str) -> dict[str, int]:
    if isinstance(value, str) and len(value) > LONGEST_MAP:
        message = f"may have at most {LONGEST_MAP} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message, value)
    return multipool.parse_pre_allocation(value, field=field)


class NodeDemandSerializer(Serializer):
    """The addresses that pods of a node use and wait for, by pool."""

    node = fields.NameField(required=False)
    in_use = PoolNumbersField(schema=_NUMBERS, required=False, default=dict)
    pending = PoolNumbersField(schema=_NUMBERS, required=False, default=dict)
    pre_allocation = fields.TextField(_pre_allocation, required=False)


class PoolNeedSerializer(Representation):
    """The addresses that a node needs of one pool and family, and the blocks that it gets for them."""

    pool = fields.TextField()
    family = fields.IntegerField()
    in_use = fields.IntegerField()
    pending = fields.IntegerField()
    pre_allocated = fields.IntegerField()
    needed = fields.IntegerField()
    held = fields.IntegerField()
    missing = fields.IntegerField()
    blocks = fields.ListField(child=fields.CIDRField())
    problem = fields.TextField()


class NodeForecastSerializer(Representation):
    """What a node will request; `known` if the cluster has the node."""

    node = fields.TextField()
    known = fields.FlagField(source="exists")
    pre_allocation = fields.ParsedField(
        schema={"type": "object", "additionalProperties": {"type": "integer"}}
    )
    pre_allocation_assumed = fields.TextField(source="assumed")
    requests = fields.ListField(child=PoolNeedSerializer(), source="needs")
    errors = fields.ListField(child=fields.TextField())


class PreflightFindingSerializer(Representation):
    """The result of one rule: what was found, and what to do."""

    rule = fields.TextField()
    result = fields.ChoiceField([result.value for result in RuleResult], source="result.value")
    found = fields.TextField(source="observation")
    advice = fields.TextField()


class PreflightSerializer(Representation):
    """Whether a cluster is ready for multi-pool mode; `config_unknown` is why cilium-config is not known."""

    cluster = fields.TextField()
    result = fields.TextField(source="preflight.result.value")
    config_unknown = fields.TextField(source="preflight.why_not")
    release = fields.TextField(source="preflight.release")
    pools = fields.IntegerField(source="preflight.pools")
    nodes = fields.IntegerField(source="preflight.nodes")
    findings = fields.ListField(child=PreflightFindingSerializer(), source="preflight.findings")


class OverlapMemberSerializer(Representation):
    """A network, and the pool, the cluster or the object whose network it is.

    `category` is that of the pool, `prefix`, or the role of an object, whose `kind` and `object` are set.
    """

    cidr = fields.CIDRField(source="network")
    cluster = fields.TextField(source="owner.cluster")
    space = fields.TextField(source="owner.space")
    category = fields.TextField(source="owner.category")
    pool = fields.TextField(source="owner.pool")
    pool_id = fields.IntegerField(source="owner.pool_id", allow_null=True)
    kind = fields.TextField(source="owner.kind")
    object = fields.TextField(source="owner.object")


def _members(owned: Sequence[overlaps.Owned]) -> list[dict[str, Any]]:
    return [{"network": network, "owner": owner} for network, owner in owned]


class FirstMembersField(fields.ListField):
    """The first members of an overlap."""

    def to_representation(self, data: Any) -> list[Any]:
        return super().to_representation(_members(data[:MEMBERS]))


class ClashesField(fields.ListField):
    """The first pairs that disturb each other inside a cluster, the outer network first."""

    def to_representation(self, data: Any) -> list[Any]:
        return super().to_representation(list(map(_members, data[:MEMBERS])))


class KindsField(fields.ListField):
    """The kinds of an overlap, sorted."""

    def to_representation(self, data: Any) -> list[Any]:
        return sorted(kind.value for kind in data)


class LengthField(fields.IntegerField):
    """The number of items of what it shows."""

    def to_representation(self, value: Any) -> int:
        return len(value)


class OverlapSerializer(Representation):
    """Networks that overlap; `cidr` is the widest one. `clashes` are the pairs inside one cluster."""

    cidr = fields.CIDRField()
    kinds = KindsField(
        child=fields.ChoiceField(sorted(kind.value for kind in overlaps.OverlapKind))
    )
    severity = fields.ChoiceField(
        [severity.value for severity in overlaps.OverlapSeverity], source="severity.value"
    )
    clusters = LengthField()
    members_in_all = LengthField(source="members")
    members = FirstMembersField(child=OverlapMemberSerializer())
    clashes = ClashesField(child=fields.ListField(child=OverlapMemberSerializer()))


class OverlapListSerializer(Representation):
    """A page of overlaps."""

    count = fields.IntegerField()
    next = fields.TextField(allow_null=True)
    results = fields.ListField(child=OverlapSerializer())


YAML = "application/yaml"
_SEVERITIES = [severity.value for severity in overlaps.OverlapSeverity]
_SHAPES = filters.parameters(
    shape=filters.choice(*pool_manifests.SHAPES),
    cluster=filters.Filter(lookups.cluster, help_text="In the shape that this cluster takes."),
)


class PoolForPod(generics.GenericView):
    """Changes nothing, although the method is POST: the view permission is enough."""

    needs = {"POST": ("pools.view_pool",)}
    posts_a_question = True
    serializer_class = ExplanationSerializer

    @extend_schema(request=PodDescriptionSerializer)
    @schema.example(
        {
            "pod": {"name": "web-0", "labels": {"app": "web"}},
            "namespace": {
                "name": "shop",
                "annotations": {"ipam.cilium.io/ip-pool": "green-pool"},
            },
        },
        "a label of the pod",
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

    @extend_schema(request=NodeDemandSerializer)
    @schema.example(
        {
            "in_use": {"default": 12},
            "pending": {"default": {"ipv4": 1}},
            "pre_allocation": "default=8,other=4",
        },
        "twelve pods, and one that waits",
    )
    def post(self, request: Request, cluster: str) -> Response:
        """What a node will request, and which blocks it would get."""
        values = self.read(request, NodeDemandSerializer)
        return self.respond(pod_cidrs.forecast(clusters.get(cluster), **values))


class Preflight(generics.GenericView):
    needs = {"GET": ("pools.view_cluster", "pools.view_pool")}
    serializer_class = PreflightSerializer

    @filters.parameters(
        release=filters.Filter(
            help_text="Of Cilium, such as 1.18, if the cluster does not show it."
        )
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Whether a cluster is ready for Cilium's multi-pool mode."""
        release = self.query_values()["release"] or ""
        cluster_row = clusters.get(cluster)
        preflight = configuration.run_preflight(cluster_row, release=release)
        return self.respond({"cluster": cluster_row.name, "preflight": preflight})


class Overlaps(generics.GenericView):
    """Pages by the CIDR of the last overlap: overlaps are computed, and are rows of no table."""

    needs = {"GET": ("pools.view_pool",)}
    serializer_class = OverlapListSerializer

    @filters.parameters(
        cluster=filters.Filter(lookups.cluster, help_text="Name or id."),
        kind=filters.choice(*(kind.value for kind in overlaps.OverlapKind)),
        severity=filters.choice(*_SEVERITIES),
        within=filters.Filter(addresses.parse_block, help_text="That touch this CIDR."),
        limit=filters.number(1, 1000, help_text="1 to 1000 (100)."),
        cursor=filters.Filter(addresses.parse_block, help_text="The cursor of a `next` link."),
    )
    def get(self, request: Request) -> Response:
        """Networks of several clusters or address spaces, or of objects of one cluster, that overlap."""
        values = self.query_values()
        cluster, kind, severity = values["cluster"], values["kind"], values["severity"]
        all_overlaps = overlaps.find_overlaps(
            cluster_id=cluster.pk if cluster else None,
            kind=overlaps.OverlapKind(kind) if kind else None,
            within=values["within"],
            severity=overlaps.OverlapSeverity(severity) if severity else None,
        )
        limit, cursor = values["limit"] or 100, values["cursor"]
        begin = _count_up_to(all_overlaps, cursor) if cursor else 0
        rest = all_overlaps[begin:]
        more = len(rest) > limit
        return self.respond(
            {
                "count": len(all_overlaps),
                "next": keyset.page_url(request, str(rest[limit - 1].cidr)) if more else None,
                "results": rest[:limit],
            }
        )


def _count_up_to(rows: Sequence[overlaps.Overlap], cursor: addresses.Network) -> int:
    """Return how many overlaps begin at or before the cursor; they are disjoint and sorted."""
    end = (cursor.version, int(cursor.network_address))
    return sum((overlap.cidr.version, int(overlap.cidr.network_address)) <= end for overlap in rows)


class _ManifestView(generics.GenericView):
    needs = {"GET": ("pools.view_pool",)}
    problem_statuses = (502,)

    def yaml_answer(self, manifests: list[podippool.PodIPPool]) -> generics.Answer:
        values = self.query_values(is_complete=False)
        shape, cluster = values["shape"], values["cluster"]
        if shape and cluster:
            message = "name a shape or a cluster"
            self.parameters.report.add("cluster", "conflicting_fields", message)
        self.parameters.raise_problems()
        if cluster:
            shape = pool_manifests.fetch_shape(cluster).value
        text = pool_manifests.render_yaml(manifests, shape or podippool.Shape.V2.value)
        return HttpResponse(text.encode(), content_type=YAML)


class PoolManifest(_ManifestView):
    @extend_schema(responses={(200, YAML): str})
    @_SHAPES
    def get(self, request: Request, pool_id: int) -> generics.Answer:
        """A pool as YAML."""
        return self.yaml_answer([pool_manifests.pool_manifest(lookups.get_pool(pool_id))])


class ClusterManifest(_ManifestView):
    @extend_schema(responses={(200, YAML): str})
    @_SHAPES
    def get(self, request: Request, cluster: str) -> generics.Answer:
        """All pod pools of a cluster as YAML."""
        return self.yaml_answer(configuration.pod_pools(clusters.get(cluster)))
