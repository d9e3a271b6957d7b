"""Errors -> RFC 9457 `application/problem+json`."""

from __future__ import annotations

from typing import Any

from rest_framework import response, views


def exception_handler(error: Exception, context: dict[str, Any]) -> response.Response | None:
    """DRF's answer in the shape of a problem document; None for what is no API error (a 500)."""
    answer = views.exception_handler(error, context)
    if answer is None:
        return None
    detail = getattr(error, "detail", "")
    answer.data = {
        "title": answer.status_text,
        "status": answer.status_code,
        "code": str(getattr(error, "default_code", "error")),
        "detail": str(detail) if isinstance(detail, str) else "The request was refused.",
        "errors": [],
    }
    answer.content_type = "application/problem+json"
    return answer
