"""Responses with a manifest: JSON, or YAML for `?format=yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from pools.platform import documents
from pools.platform.rest import query, views

_FORMATS = ("json", "yaml")
FORMAT = OpenApiParameter("format", str, description="json (default) or yaml", enum=_FORMATS)


def requested_format(request: Request) -> str:
    """Return `json` or `yaml`; raise InvalidInput for any other format or parameter."""
    parameters = query.Query(request)
    output_format = parameters.parse("format", query.choice(*_FORMATS))
    parameters.raise_problems()
    return output_format or "json"


def answer(manifest: Mapping[str, Any], output_format: str) -> views.Answer:
    if output_format == "yaml":
        return HttpResponse(documents.dump_yaml(manifest), content_type="application/yaml")
    return Response(manifest)
