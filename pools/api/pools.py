"""pools/: pools with their CIDRs and reserved ranges, ETag and If-Match; pools/import/: many at once, from manifests."""

import json
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs
from pools.cilium import pool_sync
from pools.core import dns_names, errors
from pools.models import Category, Cluster, Pool
from pools.platform import idempotency
from pools.platform.rest import attributes, fields, filters, generics, parsing, schema
from pools.platform.rest.serializers import ByFamilySerializer, Representation
from pools.register import manifests, overlaps as owners, pool_cidrs as register_cidrs, pools, usage

_FIXED = ("cluster", "name", "category", "allow_first_ip", "allow_last_ip")


class UsageSerializer(Representation):
    """Counts of addresses or blocks of one family; they add up to the capacity."""

    capacity = fields.CountField()
    held = fields.CountField()
    cooling = fields.CountField()
    reserved = fields.CountField()
    free = fields.CountField()
    ratio = fields.RatioField()
    approximate = fields.FlagField()


class UtilizationSerializer(ByFamilySerializer):
    """The usage of a pool by family."""

    ipv4 = UsageSerializer(required=False)
    ipv6 = UsageSerializer(required=False)


class WaitingFieldSerializer(Representation):
    """A field of the cluster's object that is not written, because other managers own it."""

    path = fields.TextField()
    managers = fields.ListField(child=fields.TextField())
    since = fields.TimeField()
    drift_id = fields.IntegerField(source="pk")


class PoolSerializer(attributes.AttributedSerializer):
    """A pool; a change of a family replaces all of it."""

    id = fields.IntegerField(read_only=True)
    cluster = fields.TextField(lookups.cluster_by_name, source="cluster.name")
    name = fields.NameField()
    category = fields.ChoiceField(Category.values)
    cooldown_seconds = fields.CooldownField(required=False)
    description = fields.DescriptionField(required=False)
    dns_pattern = fields.TextField(dns_names.parse_pattern, required=False)
    allow_first_ip = fields.FlagField(required=False)
    allow_last_ip = fields.FlagField(required=False)
    annotations = fields.StringMapField(required=False)
    labels = fields.StringMapField(required=False)
    ipv4 = pool_cidrs.FamilySerializer(4, required=False, allow_null=True)
    ipv6 = pool_cidrs.FamilySerializer(6, required=False, allow_null=True)
    version = fields.IntegerField(read_only=True)
    created_at = fields.TimeField(read_only=True)
    waiting = fields.ListField(child=WaitingFieldSerializer(), read_only=True)
    utilization = UtilizationSerializer(read_only=True)


class PoolChangeSerializer(PoolSerializer):
    """A change of a pool; the fields that never change may be repeated."""

    example = {"description": "Pods of production", "cooldown_seconds": 3600}

    def run_validation(self, data: Any = empty) -> Any:
        pool: Pool = self.context["row"]
        if isinstance(data, dict) and data:
            _refuse_fixed(data, pool)
            data = {name: value for name, value in data.items() if name not in _FIXED}
            return self.validate(self.to_internal_value(data))
        return super().run_validation(data)


def _refuse_fixed(data: dict[str, Any], pool: Pool) -> None:
    for name in _FIXED:
        present = pool.cluster.name if name == "cluster" else getattr(pool, name)
        if name in data and data[name] != present:
            raise errors.ImmutableInUse(f"The {name} of a pool never changes.")
    for version in (4, 6):
        if data.get(f"ipv{version}", "") is None and pool.mask_size(version) is not None:
            message = "A family of a pool is never removed: delete the pool, or remove its CIDRs."
            raise errors.ImmutableInUse(message)


class PoolFilter(attributes.AttributeFilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    category = filters.choice(*Category.values)
    name = filters.Filter(help_text="The exact name.")
    within = filters.cidr(
        field_name="cidrs__cidr", lookup_expr="net_overlaps", distinct=True,
        help_text="Pools with a CIDR that overlaps this one.",
    )  # fmt: skip
    cidr = filters.cidr(field_name="cidrs__cidr", help_text="The pool with exactly this CIDR.")


class Pools(generics.ModelViewSet):
    """Pools."""

    queryset = Pool.objects.select_related("cluster")
    serializer_class = PoolSerializer
    change_serializer_class = PoolChangeSerializer
    filterset_class = PoolFilter
    limited_by = ("cluster",)
    limited_by_body = True
    orderings = {"id": ("id",), "name": ("name", "id")}
    versioned = True
    lookup_url_kwarg = "pool_id"
    absent = "There is no such pool."
    row_text = "A pool."

    def load(self, rows: list[Any]) -> None:
        load(rows)

    def check_values(self, values: dict[str, Any], row: Pool | None = None) -> None:
        families = values["families"] = _pop_families(values)
        cidrs = [entry.cidr for family in families.values() for entry in family.cidrs]
        if row is None:
            owner = owners.owner_of_new_pool(values["cluster.name"], values["category"])
        else:
            owner = owners.owner_of_pool(row)
            cidrs = sorted({*cidrs}.difference(row.cidrs.values_list("cidr", flat=True)), key=str)
        pool_cidrs.warn_of_overlaps(self, cidrs, owner)

    @schema.example(
        {
            "cluster": "prod",
            "name": "green-pool",
            "category": "pod",
            "cooldown_seconds": 0,
            "ipv4": {
                "mask_size": 24,
                "cidrs": [{"cidr": "10.20.0.0/16", "reserved_ranges": ["10.20.0.0-10.20.0.99"]}],
            },
        },
        "a Cilium pool with a reserved range",
    )
    @pool_cidrs.OVERLAPS
    def perform_create(self, values: dict[str, Any]) -> Pool:
        """Create a pool."""
        values["cluster"] = values.pop("cluster.name")
        values.setdefault("custom_fields", {})  # required ones must have a value
        pool = pools.create(author=self.author(), **values)
        return lookups.get_pool(pool.pk)

    @pool_cidrs.OVERLAPS
    def perform_update(self, row: Pool, values: dict[str, Any]) -> Pool:
        """Change a pool; a family replaces the whole family."""
        values["families"] = values["families"] or None
        change = pools.PoolChange(**values)
        required = self.required_version(row)
        pools.change(row.pk, change, author=self.author(), version=required)
        return lookups.get_pool(row.pk)

    def perform_destroy(self, row: Pool) -> None:
        """Delete an unused pool."""
        pools.delete(row.pk, author=self.author(), version=self.required_version(row))


def load(rows: list[Any]) -> None:
    """Read the families, the usage and the conflicts of pools, a few queries for all of them."""
    families = register_cidrs.families_by_pool(rows)
    usage_by_pool = usage.usage_by_pool(rows)
    conflicts = pool_sync.conflicts_of_pools(rows)
    for pool in rows:
        pool.ipv4, pool.ipv6 = families[pool.pk].get(4), families[pool.pk].get(6)
        pool.waiting = conflicts.get(pool.pk, ())
        pool.utilization = usage_by_pool[pool.pk]


def _pop_families(values: dict[str, Any]) -> dict[int, Any]:
    parts = {4: values.pop("ipv4", None), 6: values.pop("ipv6", None)}
    return {version: family for version, family in parts.items() if family is not None}


_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
_RESULTS = ("created", "changed", "unchanged", "refused")
LARGEST_FILE = 2 * 1024 * 1024


class PoolManifestSerializer(attributes.AttributedSerializer):
    """YAML or JSON as text, the cluster of its pools unless the parameter names it, and what all of them get."""

    example = {
        "cluster": "prod",
        "manifest": "apiVersion: cilium.io/v2\nkind: CiliumPodIPPool\nmetadata: {name: green-pool}\nspec: {ipv4: {cidrs: [10.20.0.0/16], maskSize: 24}}\n",
    }

    cluster = fields.TextField(required=False)
    manifest = fields.TextField()


class FieldProblemSerializer(Representation):
    """What is wrong with one field."""

    field = fields.TextField()
    code = fields.TextField()
    message = fields.TextField()
    value = fields.TextField()


class PoolReportSerializer(Representation):
    """What happened to one object of a manifest; `document` counts from 0."""

    document = fields.IntegerField()
    name = fields.TextField()
    result = fields.ChoiceField(_RESULTS)
    problems = fields.ListField(child=FieldProblemSerializer())
    pool_id = fields.IntegerField(allow_null=True)


class PoolReportsSerializer(Representation):
    reports = fields.ListField(child=PoolReportSerializer())


class PoolImport(generics.GenericView):
    needs = {"POST": ("pools.add_pool", "pools.change_pool")}
    idempotent = ("POST",)
    serializer_class = PoolReportsSerializer

    @extend_schema(
        request={
            "application/json": PoolManifestSerializer,
            "application/yaml": OpenApiTypes.STR,
        },
        responses={200: PoolReportsSerializer, 201: PoolReportsSerializer},
    )
    @filters.parameters(
        cluster=filters.Filter(help_text="The cluster of the pools: name or id."),
        dry_run=filters.flag(help_text="true: only report what would happen."),
    )
    def post(self, request: Request) -> Response:
        """Import pools from CiliumPodIPPools or Helm values, all or nothing."""
        parameters = self.query_values()
        text, values = self._read_manifest(request)
        name = values.pop("cluster", None) or parameters["cluster"]
        if name is None:
            raise errors.InvalidInput.for_field(
                "cluster", "required", "name the cluster of the pools"
            )
        cluster = lookups.cluster(name, "cluster")
        # Not the raw body: the boundary of a multipart form differs in each request.
        identity = b"\0".join([name.encode(), text, json.dumps(values, sort_keys=True).encode()])
        stored = generics.run_once(
            request,
            lambda: self._import(request, text, cluster, values, bool(parameters["dry_run"])),
            body=identity,
        )
        return Response(stored.answer, status=stored.status)

    def _import(
        self,
        request: Request,
        text: bytes,
        cluster: Cluster,
        attribute_values: dict[str, Any],
        dry_run: bool,
    ) -> idempotency.StoredAnswer:
        reports = manifests.apply_manifests(
            text,
            cluster,
            author=self.author(),
            dry_run=dry_run,
            attributes=attribute_values,
        )
        document = self.represent({"reports": reports})
        if any(report.result == "refused" for report in reports):
            problems = [
                problem.under(f"reports.{index}")
                for index, report in enumerate(reports)
                for problem in report.problems
            ]
            error = errors.InvalidInput.all(problems)
            error.code = "import_refused"
            error.extra = document
            raise error
        is_created = any(report.result == "created" for report in reports) and not dry_run
        return idempotency.StoredAnswer(201 if is_created else 200, document)

    def _read_manifest(self, request: Request) -> tuple[bytes, dict[str, Any]]:
        """Return the YAML or JSON text, and the other fields of the body."""
        kind = parsing.media_type(request)
        if kind == "multipart/form-data":
            return _uploaded_manifest(request)
        if kind in _YAML:
            return parsing.body(request), {}
        values = self.read(request, PoolManifestSerializer)
        return values.pop("manifest").encode(), values


def _uploaded_manifest(request: Request) -> tuple[bytes, dict[str, Any]]:
    plain = request._request
    if int(plain.META.get("CONTENT_LENGTH") or 0) > 2 * LARGEST_FILE:
        raise parsing.TooLarge
    file = plain.FILES.get("file")
    if file is None:
        raise errors.InvalidInput.for_field(
            "file", "required", "send the manifest as the part `file`"
        )
    if (file.size or 0) > LARGEST_FILE:
        raise parsing.TooLarge
    return file.read(), {"cluster": plain.POST.get("cluster")}
