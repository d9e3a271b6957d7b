"""Base class and helpers of all REST views: authentication, permissions, idempotency, responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from django.db import transaction
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from rest_framework import negotiation, permissions, views
from rest_framework.request import Request

from pools.core import errors
from pools.platform import database, documents, idempotency
from pools.platform.rest import authentication, parsing, token_scopes


class HasPermission(permissions.BasePermission):
    """The user has the permissions that `needs` of the view lists for the method.

    A method that is not listed needs only a login (405 follows, or OPTIONS answers).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not user or not user.is_authenticated:
            return False
        needed = view.needs.get("GET" if request.method == "HEAD" else request.method, ())
        missing = [name for name in needed if not user.has_perm(name)]
        if missing:
            token_scopes.explain_missing(request.auth, missing)
        return not missing


JSON = parsing.JSON
REQUEST_ID = "ipam.request_id"  # key in request.META; the site's middleware puts it there

Answer = HttpResponseBase
Needs = Mapping[str, tuple[str, ...]]


class OnlyJSON(negotiation.BaseContentNegotiation):
    """Always responds with JSON, whatever Accept says (RFC 9110 12.4.1 allows that)."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        first = next(iter(renderers))
        return first, first.media_type


class View(views.APIView):
    """An endpoint; `needs` lists the permissions of each method."""

    authentication_classes = (
        authentication.TokenAuthentication,
        authentication.SessionAuthentication,
    )
    permission_classes = (HasPermission,)
    content_negotiation_class = OnlyJSON
    parser_classes = (parsing.JSONParser,)
    needs: Needs = {}
    # What a limited token may do here (token_scopes.py).
    absent = "There is no such object."  # the answer for an object out of its cluster or pool
    posts_a_question = False  # POST changes nothing
    limited_by: tuple[str, ...] = ()  # filters of a list: cluster, pool
    limited_by_body = False  # POST is about the cluster that the body names
    idempotent: tuple[str, ...] = ()  # methods that heed an Idempotency-Key
    problem_statuses: tuple[
        int, ...
    ] = ()  # for the OpenAPI document, beside those of all endpoints
    largest_body = documents.LARGEST  # bytes

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate and check permissions; there are no versions, formats or throttles."""
        self.format_kwarg = None
        request.version, request.versioning_scheme = None, None
        request.accepted_renderer, request.accepted_media_type = self.get_renderers()[0], JSON
        self.perform_authentication(request)
        self.check_permissions(request)
        token_scopes.enforce(request, self)
        if not all(map(_is_storable, kwargs.values())):
            raise errors.NotFound("There is no such object.")


def _is_storable(value: int | str) -> bool:
    """Return True if PostgreSQL could store such an id or name at all."""
    return value < 1 << 63 if isinstance(value, int) else "\0" not in value


def require(request: Request, permission: str) -> None:
    """Raise NotAllowed without a permission that only some bodies of a method need."""
    if not request.user.has_perm(permission):
        token_scopes.explain_missing(request.auth, [permission])
        raise errors.NotAllowed(f"This needs the permission {permission}.")


def key(request: Request, body: bytes | None = None) -> idempotency.Key | None:
    """Return the request's Idempotency-Key, which is bound to the user, method, URL and body.

    `body` replaces the body of the request where clients may write the same content in several ways.
    """
    header = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if header is None:
        return None
    return idempotency.parse_key(
        header,
        user_id=request.user.pk or 0,
        method=request.method or "",
        path=request.get_full_path(),
        body=parsing.body(request) if body is None else body,
    )


def run_once(
    request: Request, work: Callable[[], idempotency.StoredAnswer], *, body: bytes | None = None
) -> idempotency.StoredAnswer:
    """Do the work, or return the answer that is stored under the same Idempotency-Key.

    The key is stored in the transaction of the work; an error in `work` rolls both back.
    """
    idempotency_key = key(request, body)
    if idempotency_key is None:
        return work()
    return database.with_retries(partial(_run_in_transaction, idempotency_key, work))


def _run_in_transaction(
    idempotency_key: idempotency.Key, work: Callable[[], idempotency.StoredAnswer]
) -> idempotency.StoredAnswer:
    with transaction.atomic():
        answer = idempotency.run_once(idempotency_key, work)
    return answer  # noqa: RET504  # mypy: a context manager may swallow


def endpoints(prefix: str, *routes: tuple[str, type[views.APIView], str]) -> list[URLPattern]:
    """Return the URL patterns of views below a prefix: the rest of the route, the view, the name of the URL."""
    return [path(f"{prefix}{route}", view.as_view(), name=name) for route, view, name in routes]
