"""Response headers in addition to those of Django's SecurityMiddleware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from csp import middleware as csp
from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


_DATA = ("application/json", "application/problem+json")
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


class HeadersMiddleware(csp.CSPMiddleware):
    """Set Content-Security-Policy by path, Permissions-Policy, and no caching of private pages."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault(
            "Permissions-Policy", "camera=(), geolocation=(), microphone=()"
        )
        response.headers.setdefault("Cache-Control", "private, no-store")
        # The API browser sets a weaker policy, for sign-in in a window of another site.
        response.headers["Cross-Origin-Opener-Policy"] = settings.SECURE_CROSS_ORIGIN_OPENER_POLICY
        if response.headers.get("Content-Type", "").startswith(_DATA):
            # Data loads no resources: a constant policy is enough.
            response.headers.setdefault("Content-Security-Policy", _NOTHING)
            return response
        return super().process_response(request, response)

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> csp.PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and parts.config is None:
            parts.config = _policy(request.path_info)
        return parts


def _policy(path: str) -> dict[str, list[str]] | None:
    by_prefix: dict[str, dict[str, list[str]]] = settings.IPAM_CSP_BY_PREFIX
    matching = [prefix for prefix in by_prefix if path.startswith(prefix)]
    return by_prefix[max(matching, key=len)] if matching else None
