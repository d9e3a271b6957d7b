"""pools/import/: import CiliumPodIPPools and Helm values, atomically, with a report per object."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.core import errors
from pools.models import Cluster
from pools.platform import idempotency
from pools.platform.rest import attributes, fields, generics, parsing, query, views
from pools.platform.rest.serializers import Representation
from pools.register import manifests

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
        parameters=[
            OpenApiParameter("cluster", str, description="The cluster of the pools: name or id."),
            OpenApiParameter("dry_run", bool, description="true: only report what would happen."),
        ],
        request={
            "application/json": PoolManifestSerializer,
            "application/yaml": OpenApiTypes.STR,
        },
        responses={200: PoolReportsSerializer, 201: PoolReportsSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import pools from CiliumPodIPPools or Helm values, all or nothing."""
        cluster_parameter = self.parameters.text("cluster")
        dry_run = bool(self.parameters.parse("dry_run", query.flag))
        self.parameters.raise_problems()
        text, values = self._read_manifest(request)
        name = values.pop("cluster", None) or cluster_parameter
        if name is None:
            raise errors.InvalidInput.for_field(
                "cluster", "required", "name the cluster of the pools"
            )
        cluster = lookups.cluster(name, "cluster")
        # Not the raw body: the boundary of a multipart form differs in each request.
        identity = b"\0".join([name.encode(), text, json.dumps(values, sort_keys=True).encode()])
        stored = views.run_once(
            request,
            lambda: self._import(request, text, cluster, values, dry_run=dry_run),
            body=identity,
        )
        return Response(stored.answer, status=stored.status)

    def _import(
        self,
        request: Request,
        text: bytes,
        cluster: Cluster,
        attribute_values: dict[str, Any],
        *,
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
