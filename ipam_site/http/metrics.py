"""/metrics for Prometheus, computed from the database at each scrape.

A middleware before Django's own answers requests with an `Authorization` header: a scrape inside a
cluster uses a pod's address as host and plain HTTP, and must be neither refused nor redirected for
that. Requests with a session of the admin site reach the same page by its URL.
"""

import gzip
import hmac
import math
import platform
from collections.abc import Iterator, Mapping

from django import http
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from prometheus_client import exposition, metrics_core
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from rest_framework import exceptions

import ipam_site
from ipam_site.http import middleware
from pools.platform.metrics import registry
from pools.platform.rest import authentication, token_scopes

PATH = "/metrics"
PERMISSION = "pools.view_measure"
_OPEN_METRICS = "application/openmetrics-text"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class MetricsMiddleware(middleware.Middleware):
    def __call__(self, request: http.HttpRequest) -> http.HttpResponseBase:
        if request.path_info != PATH:
            return self.get_response(request)
        if "HTTP_AUTHORIZATION" in request.META:
            return _by_header(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            return self.get_response(request)
        return _error(401)


def by_session(request: http.HttpRequest) -> http.HttpResponseBase:
    """Return the metrics for a user who is signed in to the admin site."""
    if not request.user.is_authenticated:
        return _error(401)
    return _answer(request) if request.user.has_perm(PERMISSION) else _error(403)


def _by_header(request: http.HttpRequest) -> http.HttpResponseBase:
    if _is_scraper(request.META["HTTP_AUTHORIZATION"]):
        return _answer(request)
    try:
        user_and_token = authentication.TokenAuthentication().authenticate(request)  # type: ignore[arg-type]  # reads META only
    except exceptions.Throttled as error:
        seconds = math.ceil(getattr(error, "wait", None) or 1)  # the stubs do not have it
        return _error(429, **{"Retry-After": str(seconds)})
    except exceptions.AuthenticationFailed:
        return _error(401)
    except (DatabaseError, InterfaceError):
        return _error(503)
    if user_and_token is None:
        return _error(401)
    user, token = user_and_token
    limits = token_scopes.limits_of(token)
    if limits is not None and limits.is_confined:  # the metrics are of all clusters
        return _error(403)
    return _answer(request) if user.has_perm(PERMISSION) else _error(403)


def _is_scraper(header: str) -> bool:
    """Return True for the token of IPAM_METRICS_TOKEN, which is only for scrapes."""
    scheme, _, token = header.partition(" ")
    presented, configured = (
        token.strip().encode(errors="replace"),
        settings.IPAM_METRICS_TOKEN.encode(),
    )
    return (
        scheme.lower() == "bearer"
        and bool(configured)
        and hmac.compare_digest(presented, configured)
    )


def _answer(request: http.HttpRequest) -> http.HttpResponseBase:
    if request.method not in {"GET", "HEAD"}:
        return _error(405, Allow="GET, HEAD")
    is_open = _OPEN_METRICS in request.headers.get("Accept", "")
    content_type = (
        openmetrics.CONTENT_TYPE_LATEST if is_open else exposition.CONTENT_TYPE_PLAIN_0_0_4
    )
    headers = {**_HEADERS, "Vary": "Accept, Accept-Encoding"}
    if request.method == "HEAD":
        return http.HttpResponse(content_type=content_type, headers=headers)
    try:
        text = render(open_metrics=is_open)
    except (DatabaseError, InterfaceError):
        return _error(503)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        text = gzip.compress(text, compresslevel=1)
    return http.HttpResponse(text, content_type=content_type, headers=headers)


_ERROR_TEXTS = {
    401: "The metrics require a token.\n",
    429: "Too many requests from this address have had a wrong token.\n",
    403: f"The metrics require the permission {PERMISSION}.\n",
    405: "Use GET to read the metrics.\n",
    503: "The database does not answer.\n",
}


def _error(status: int, **headers: str) -> http.HttpResponse:
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = "2"
    return http.HttpResponse(
        _ERROR_TEXTS[status],
        status=status,
        content_type="text/plain; charset=utf-8",
        headers={**_HEADERS, **headers},
    )


def render(*, open_metrics: bool = False) -> bytes:
    """Return all metrics, in the Prometheus text format 0.0.4 or in OpenMetrics."""
    write = openmetrics.generate_latest if open_metrics else exposition.generate_latest
    return write(_Register())


class _Register(Collector):
    def collect(self) -> Iterator[metrics_core.Metric]:
        for family, samples in registry.collect().items():
            metric = metrics_core.Metric(family.stem, family.help, family.kind.value)
            for (name, labels), value in samples.items():
                metric.add_sample(name, dict(labels), value)
            if family.name == "ipam_build_info":
                metric.add_sample(family.name, dict(_build()), 1)
            yield metric


def _build() -> Mapping[str, str]:
    return {
        "version": ipam_site.__version__,
        "revision": settings.IPAM_REVISION,
        "python": platform.python_version(),
    }
