"""One block allocated, released or read, and a page of blocks, with a token, past the other middlewares and REST framework.

These took three quarters of such a request. Here it is one statement, which judges the token and does the
work (docs/performance.md). Only success is answered here. A request with anything unusual, and one that is
refused, has changed nothing and takes the ordinary way from its beginning, so that one place says why.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from rest_framework.exceptions import APIException

from ipam_site import database_watch
from ipam_site.http import middleware, problems
from ipam_site.http.headers import HeadersMiddleware
from pools import tasks
from pools.api import allocations, blocks
from pools.core import errors, object_reader
from pools.platform import documents, idempotency, prepared
from pools.platform.rest import authentication, parsing
from pools.platform.tokens import Bearer
from pools.register.allocator import allocation, requests

_POST = re.compile(
    "/api/v1/(?:pools/([0-9]{1,18})/allocations|blocks/([0-9]{1,18})/release)/", re.ASCII
)
_GET = re.compile("/api/v1/blocks/(?:([0-9]{1,18})/)?", re.ASCII)
_LARGEST = 16 * 1024  # bytes of a body
# Other fields ask for several blocks, or for a certain one.
_ALLOCATION = {"holder", "org", "env", "family"}
_RELEASE = {"holder", "org"}


Work = Callable[[Bearer], tuple[int, Any] | None]  # -> status and document


class FastPathMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._headers = {scheme: _constant_headers(scheme) for scheme in ("http", "https")}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        route = _find_route(request)
        if route is None or not _is_plain(request):
            return self._get_response(request)
        response = _respond(request, route)
        if response is None:
            return self._get_response(request)
        for name, value in self._headers[request.scheme or ""].items():
            response.headers.setdefault(name, value)
        response.headers["Allow"] = route.methods
        response.headers["Content-Length"] = str(len(response.content))
        response.headers[middleware.HEADER] = request.META[problems.REQUEST_ID]
        return response


class _Route(NamedTuple):
    methods: str  # all that the path has
    work: Work
    changes: bool  # the register


def _find_route(request: HttpRequest) -> _Route | None:
    if request.method == "POST" and (path := _POST.fullmatch(request.path_info)):
        if request.META.get("QUERY_STRING"):
            return None
        pool, block = path.groups()
        work = (
            partial(_allocate, request, int(pool))
            if pool
            else partial(_release, request, int(block))
        )
        return _Route("POST, OPTIONS", work, changes=True)
    if request.method == "GET" and (path := _GET.fullmatch(request.path_info)):
        if (request.META.get("CONTENT_LENGTH") or "0") != "0":
            return None
        if not path[1]:
            return _Route("GET, HEAD, OPTIONS", partial(_list, request), changes=False)
        if not request.META.get("QUERY_STRING"):
            return _Route("GET, PATCH, HEAD, OPTIONS", partial(_show, int(path[1])), changes=False)
    return None


def _constant_headers(scheme: str) -> Mapping[str, str]:
    """Return what the other middlewares and REST framework add to each such answer."""
    environ = {"REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(), "wsgi.url_scheme": scheme}
    request = WSGIRequest(environ)
    response = HttpResponse(content_type=parsing.JSON)
    for kind in (XFrameOptionsMiddleware, HeadersMiddleware, SecurityMiddleware):
        kind(lambda _: response).process_response(request, response)  # which they change
    return dict(response.headers)


def _is_plain(request: HttpRequest) -> bool:
    """Return True if the other middlewares would do nothing but add their headers to the answer."""
    meta = request.META
    length = meta.get("CONTENT_LENGTH") or "0"
    if (
        meta.get("HTTP_COOKIE")
        or "HTTP_TRANSFER_ENCODING" in meta
        or not (length.isdecimal() and len(length) < 10 and int(length) <= _LARGEST)
        or (settings.SECURE_SSL_REDIRECT and not request.is_secure())
        or database_watch.is_refusing()
        or not prepared.is_connected()
    ):
        return False
    try:
        request.get_host()
    except SuspiciousOperation:
        return False
    return True


def _respond(request: HttpRequest, route: _Route) -> HttpResponse | None:
    """Answer the request; None if that is for the ordinary way."""
    try:
        token = authentication.parse_header(request)
        if token is None or (route.changes and parsing.media_type(request) != parsing.JSON):
            return None
        bearer = authentication.bearer(token, request_id=middleware.identify(request))
        with database_watch.watched():
            answer = route.work(bearer)
            if answer is not None:
                authentication.record_use(bearer.digest)
    except (OperationalError, InterfaceError) as error:
        problem = problems.problem_of(error) if route.changes else None  # it may have been done
        return problem.response(request) if problem else None
    except (errors.IpamError, APIException, DatabaseError):
        return None
    if answer is None:
        return None
    status, document = answer
    return HttpResponse(orjson.dumps(document), status=status, content_type=parsing.JSON)


def _show(block_id: int, bearer: Bearer) -> tuple[int, Any] | None:
    block = blocks.read_block(block_id, bearer=bearer)
    return None if block is None else (200, block)


def _list(request: HttpRequest, bearer: Bearer) -> tuple[int, Any] | None:
    page = blocks.read_page(request, bearer=bearer)
    return None if page is None else (200, page)


def _read(request: HttpRequest, names: set[str]) -> object_reader.Fields | None:
    """Return the object of the body; None if it has another field than these. Raises InvalidInput."""
    data = documents.load_json(request.body)
    if not data.keys() <= names:
        return None
    return object_reader.Fields(data, "", object_reader.ProblemReport())


def _allocate(request: HttpRequest, pool_id: int, bearer: Bearer) -> tuple[int, Any] | None:
    body = _read(request, _ALLOCATION)
    if body is None:
        return None
    demand, _ = allocations.parse_demand(body)
    key = idempotency.parse_key(
        request.META.get("HTTP_IDEMPOTENCY_KEY"),
        user_id=0,  # the statement takes that of the token
        method="POST",
        path=request.path,
        body=request.body,
    )
    result = requests.allocate_by_token(pool_id, demand, bearer=bearer, key=key)
    return None if result is None else (result.status, {"blocks": result.blocks})


def _release(request: HttpRequest, block_id: int, bearer: Bearer) -> tuple[int, Any] | None:
    body = _read(request, _RELEASE)
    if body is None or "HTTP_IDEMPOTENCY_KEY" in request.META:
        return None
    holder, org = allocations.parse_release(body)
    result = allocation.release_by_token(block_id, holder, bearer=bearer, org=org)
    if result is None:
        return None
    if result.has_pending_requests:
        tasks.nudge(result.block["pool_id"])
    return 200, result.block
