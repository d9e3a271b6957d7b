"""What errors are answered with: RFC 9457 `application/problem+json` for all paths below /api/, pages elsewhere.

Pages are those of the admin site for users who are signed in to it, else without its frame. Errors of the register have a code; errors of Django, DRF and the database get one here. docs/api.md
lists the codes.
"""

import http
import logging
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.contrib import admin
from django.core import exceptions as core_exceptions
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.template import loader
from django.urls import Resolver404, reverse
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise
from rest_framework import exceptions, views

from pools.clusters.reconcile import connecting
from pools.core import errors
from pools.platform import database
from pools.platform.admin import pages
from pools.platform.outbound import faults
from pools.platform.rest import token_scopes

API = "/api/"
REQUEST_ID = "ipam.request_id"  # key in request.META
CONTENT_TYPE = "application/problem+json"
TYPE = "urn:problem-type:cadastre:"
RETRY_AFTER = 2  # seconds; a database restart takes a few
_READ_ONLY = "25006"  # SQLSTATE of a server that became a standby
# What is said of a database that answers, by SQLSTATE: deadlock_detected, lock_not_available, query_canceled.
_LOCKED = "Somebody else is changing the same objects. Nothing was allocated."
_WAITS = {
    "40P01": _LOCKED,
    "55P03": _LOCKED,
    "57014": "The database took too long for this. Nothing was allocated.",
}

log = logging.getLogger(__name__)

_STATUS: list[tuple[type[errors.IpamError], int]] = [
    (errors.InvalidInput, 400),
    (errors.NotAllowed, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.VersionMismatch, 412),
    (errors.IdempotencyMismatch, 422),
    (errors.Unavailable, 503),
    (connecting.IdentityChanged, 409),
    (faults.AddressNotAllowed, 400),
    (faults.SecretUnreadable, 503),
    (faults.ClusterFault, 502),
]
# Codes of errors of which only the status is known.
_CODES = {
    400: "bad_request",
    401: "not_authenticated",
    403: "permission_denied",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    429: "throttled",
    500: "internal_error",
    503: "ipam_unavailable",
}


@dataclass(frozen=True)
class Problem:
    """A problem document; `extra` has further members of it."""

    status: int
    code: str
    title: str
    detail: str = ""
    problems: tuple[errors.FieldProblem, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def response(self, request: HttpRequest) -> JsonResponse:
        document = {
            "type": TYPE + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail or self.title,
            "code": self.code,
            "request_id": request.META.get(REQUEST_ID, ""),
            "errors": [asdict(problem) for problem in self.problems],
            **self.extra,
        }
        return JsonResponse(
            document, status=self.status, content_type=CONTENT_TYPE, headers=dict(self.headers)
        )


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponseBase | None:
    """DRF's EXCEPTION_HANDLER; returns None for unexpected errors, which become a 500."""
    problem = problem_of(error)
    if problem is None:
        return None
    views.set_rollback()
    request = context["request"]
    clusters = _waiting_clusters(error)
    if clusters is not None and request.user.has_perm("pools.view_cluster"):
        limits = token_scopes.limits_of(request.auth)
        if limits is None or not limits.is_confined:
            problem = replace(problem, extra={**problem.extra, "clusters": clusters})
    elif isinstance(error, errors.IpamError) and error.names_another:
        limits = token_scopes.limits_of(request.auth)
        if limits is not None and limits.hides(error.names_another):
            problem = replace(problem, detail=f"{problem.title}.")
    return problem.response(request._request)


def _waiting_clusters(error: Exception) -> list[str] | None:
    """Return the clusters that a recovery waits for, None if the error is about something else."""
    if isinstance(error, DatabaseError) and database.sqlstate(error) == database.RECOVERING:
        error = database.recovery_error(error)
    if not isinstance(error, errors.Recovering):
        return None
    return error.clusters.split(", ") if error.clusters else []


def problem_of(error: BaseException) -> Problem | None:
    """Return the problem document of an error, None for an unexpected error."""
    if isinstance(error, errors.IpamError):
        return _of_register(error)
    if isinstance(error, exceptions.APIException):
        return _of_rest_framework(error)
    if isinstance(error, DatabaseError | InterfaceError):
        return _of_database(error)
    if isinstance(error, Http404):
        return _plain(404, "There is no such endpoint.")
    if isinstance(error, core_exceptions.PermissionDenied):
        return _plain(403, str(error))
    if isinstance(error, core_exceptions.RequestDataTooBig):
        return _plain(413, str(error))
    bad_requests = (
        core_exceptions.SuspiciousOperation | core_exceptions.BadRequest | MultiPartParserError
    )
    return _plain(400, str(error)) if isinstance(error, bad_requests) else None


def _plain(status: int, detail: str = "") -> Problem:
    phrase = http.HTTPStatus(status).phrase
    return Problem(status, _CODES.get(status, "error"), phrase, detail)


def _of_register(error: errors.IpamError) -> Problem:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if error.code == "too_large":
        status = 413
    headers = {}
    if isinstance(error, errors.Unavailable):
        headers["Retry-After"] = str(RETRY_AFTER)
    elif isinstance(error, errors.CoolingDown):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return Problem(
        status,
        error.code,
        title=(type(error).__doc__ or "").strip().partition("\n")[0].rstrip("."),
        detail=error.message,
        problems=error.problems,
        headers=headers,
        extra=error.extra,
    )


def _of_rest_framework(error: exceptions.APIException) -> Problem:
    headers = {}
    if challenge := getattr(error, "auth_header", ""):
        headers["WWW-Authenticate"] = str(challenge)
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    code = error.get_codes()
    return Problem(
        error.status_code,
        code if isinstance(code, str) else "invalid",
        title=http.HTTPStatus(error.status_code).phrase,
        detail=str(error.detail) if isinstance(error.detail, str) else "",
        headers=headers,
    )


def _of_database(error: DatabaseError | InterfaceError) -> Problem | None:
    """Return 503 for a database that is unavailable, 409 for a constraint, else None."""
    if database.sqlstate(error) == database.RECOVERING:
        return _of_register(database.recovery_error(error))
    unavailable = isinstance(error, OperationalError | InterfaceError)
    if unavailable or database.sqlstate(error) == _READ_ONLY:
        log.warning("database unavailable for a request: %s", error)
        return _of_register(errors.Unavailable(_WAITS.get(database.sqlstate(error), "")))
    if isinstance(error, IntegrityError):
        log.error("request violates a constraint: %s", error)
        return _of_register(errors.Conflict())
    return None


# --- outside of DRF's views -----------------------------------------------------------------------


def replace_page(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Replace a page of Django or a middleware by a problem document, for an API request."""
    if response.status_code in {301, 302} and request.method not in {"GET", "HEAD"}:
        # Clients repeat a 308, unlike a 301 or 302, with the same method and body.
        return HttpResponse(
            status=308, headers={"Location": response.headers["Location"], "Content-Length": "0"}
        )
    kind = response.headers.get("Content-Type", "")
    if response.status_code < 400 or "json" in kind or "yaml" in kind:
        return response
    return _plain(response.status_code).response(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return (problem_of(exception) or _plain(400)).response(request)
    text = str(exception) if isinstance(exception, core_exceptions.BadRequest) else ""
    return error_page(request, 400, text)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return _plain(403).response(request)
    return error_page(request, 403, str(exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return _plain(404, "There is no such endpoint.").response(request)
    # The exception of a resolver lists all URL patterns.
    text = "" if isinstance(exception, Resolver404) else str(exception)
    return error_page(request, 404, text)


def csrf_failure(request: HttpRequest, **_reason: str) -> HttpResponseBase:
    """Handle a form without the CSRF token of the session (CSRF_FAILURE_VIEW)."""
    if _is_api(request):
        return _plain(403).response(request)
    text = gettext(
        "The form was not sent: its session has ended or it belongs to another session. Go back,"
        " reload the page and submit the form again."
    )
    return error_page(request, 403, text)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Return the page of an unexpected error, 503 if the database is unavailable (handler500)."""
    error = sys.exc_info()[1]
    problem = problem_of(error) if error else None
    if _is_api(request):
        return (problem or _plain(500)).response(request)
    if problem is not None and problem.status == 503:
        return _unavailable_page(problem)
    return plain_page(500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Return a 503 response without using the database, which does not answer."""
    problem = _of_register(errors.Unavailable())
    return problem.response(request) if _is_api(request) else _unavailable_page(problem)


def _unavailable_page(problem: Problem) -> HttpResponse:
    text = gettext("%(detail)s Nothing was changed. Try again in a moment. (%(code)s)") % {
        "detail": problem.detail,
        "code": problem.code,
    }
    answer = plain_page(503, text, title=problem.detail.partition(". ")[0])
    for name, value in {**problem.headers, "Cache-Control": "no-store"}.items():
        answer.headers[name] = value
    return answer


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(API)


# --- pages ----------------------------------------------------------------------------------------

_TEXTS = {
    400: _("The request is not valid."),
    403: _("You lack the permission for this. An administrator can grant it to you."),
    404: _("This page or object does not exist, or you have no permission to view it."),
    500: _("An internal error occurred. Your changes were not saved. The log has the details."),
}


def error_page(request: HttpRequest, status: int, text: str = "") -> HttpResponseBase:
    """Return the error page of a status; `text` describes the error further."""
    if not _has_frame(request):
        return plain_page(status, text)
    title, text = _words(status, text)
    return pages.page(request, "error.html", title=title, status=status, text=text)


def _has_frame(request: HttpRequest) -> bool:
    """Return True for pages of the admin site with a signed-in user.

    On other paths the content security policy forbids the scripts and styles of the frame.
    """
    if not request.path_info.startswith(reverse("admin:index")):
        return False
    return hasattr(request, "user") and admin.site.has_permission(request)


def plain_page(
    status: int, text: str = "", *, title: str = "", link: tuple[str, StrOrPromise] | None = None
) -> HttpResponse:
    """Return an error page without the frame of the admin site, which uses the database.

    `link` is the URL and the text of a further way on.
    """
    heading, text = _words(status, text)
    context = {"title": title or heading, "text": text, "link": link}
    page = loader.render_to_string("cadastre/error_plain.html", context)
    return HttpResponse(page, status=status)


def _words(status: int, text: str) -> tuple[str, str]:
    title = http.HTTPStatus(status).phrase.capitalize()
    return title, pages.sentence(text or str(_TEXTS[status]))
