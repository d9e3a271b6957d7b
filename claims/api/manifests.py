"""Responses with a manifest: JSON, or YAML for `?format=yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from pools.platform import documents
from pools.platform.rest import query, views


def requested_format(request: Request) -> str:
    """Return `json` or `yaml`; raise InvalidInput for any other format or parameter."""
    parameters = query.Query(request)
    output_format = parameters.parse("format", query.choice("json", "yaml"))
    parameters.done()
    return output_format or "json"


def answer(manifest: Mapping[str, Any], output_format: str) -> views.Answer:
    if output_format == "yaml":
        return HttpResponse(documents.dump_yaml(manifest), content_type="application/yaml")
    return views.answer(manifest)
