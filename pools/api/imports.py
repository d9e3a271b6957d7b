"""pools/import/: import CiliumPodIPPools and Helm values, atomically, with a report per object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import errors
from pools.models import Cluster
from pools.platform import idempotency
from pools.platform.rest import parsing, query, views
from pools.register import manifests

_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
LARGEST_FILE = 2 * 1024 * 1024


class PoolImport(views.View):
    needs = {"POST": ("pools.add_pool", "pools.change_pool")}

    @extend_schema(**endpoints.POOL_IMPORT)
    def post(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        cluster_parameter = parameters.text("cluster")
        dry_run = bool(parameters.parse("dry_run", query.flag))
        parameters.done()
        text, cluster_field = _read_manifest(request)
        name = cluster_field or cluster_parameter
        if name is None:
            raise errors.InvalidInput.for_field(
                "cluster", "required", "name the cluster of the pools"
            )
        cluster = lookups.cluster(name, "cluster")
        # Not the raw body: the boundary of a multipart form differs in each request.
        identity = b"\0".join([name.encode(), text])
        stored = views.run_once(
            request, lambda: _import(request, text, cluster, dry_run=dry_run), body=identity
        )
        return views.answer(stored.answer, status=stored.status)


def _import(
    request: Request, text: bytes, cluster: Cluster, *, dry_run: bool
) -> idempotency.Stored:
    reports = manifests.apply_manifests(
        text, cluster, author=views.author(request), dry_run=dry_run
    )
    shapes = [report_shape(report) for report in reports]
    refused_reports = [report for report in reports if report.result == "refused"]
    if refused_reports:
        problems = [
            problem.under(f"reports.{index}")
            for index, report in enumerate(reports)
            for problem in report.problems
        ]
        error = errors.InvalidInput.all(problems)
        error.code = "import_refused"
        error.extra = {"reports": shapes}  # type: ignore[attr-defined]  # read by ipam_site.http.problems
        raise error
    is_created = any(report.result == "created" for report in reports) and not dry_run
    return idempotency.Stored(201 if is_created else 200, {"reports": shapes})


def report_shape(report: manifests.ManifestReport) -> dict[str, Any]:
    return {
        "document": report.document,
        "name": report.name,
        "verdict": report.result,
        "problems": [asdict(problem) for problem in report.problems],
        "pool_id": report.pool_id,
    }


def _read_manifest(request: Request) -> tuple[bytes, str | None]:
    """Return the YAML or JSON text, and the cluster's name if the body has one."""
    kind = parsing.media_type(request)
    if kind == "multipart/form-data":
        return _uploaded_manifest(request)
    if kind in _YAML:
        return parsing.body(request), None
    body = parsing.fields(request, "cluster", "manifest")
    manifest = body.parse("manifest", parsing.text)
    cluster = body.parse("cluster", parsing.text) if body.has("cluster") else None
    body.report.raise_any()
    return (manifest or "").encode(), cluster


def _uploaded_manifest(request: Request) -> tuple[bytes, str | None]:
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
    return file.read(), plain.POST.get("cluster")
