"""What a session may reach: nothing with a second factor that it has not shown, or that is still to be enrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from ipam_site.http.middleware import ADMIN
from pools.models import SecondFactor
from pools.platform import second_factor

BACKEND = "ipam_site.backends.Accounts"
_VERIFIED = "second_factor"  # in the session: the id of the factor that was shown
_REACHABLE = (
    "admin:second_factor",
    "admin:passkey_creation_options",
    "admin:passkey_add",
    "admin:logout",
    "admin:jsi18n",
)


def sign_in(request: HttpRequest, user: Any, factor: SecondFactor) -> None:
    """Sign in a user whose password and second factor, or passkey, were right."""
    auth.login(request, user, backend=BACKEND)
    mark_verified(request, factor)


def mark_verified(request: HttpRequest, factor: SecondFactor) -> None:
    """Record in the session that the factor was shown; other sessions of the user end."""
    request.session[_VERIFIED] = factor.pk
    request.session.cycle_key()


class SecondFactorMiddleware:
    """End sessions without the second factor of their user, and lead to the enrolment who must have one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # A request without a session, as with a token, does not ask for one: answers would vary by cookie.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and _is_local(request):
            factor = getattr(request.user, "second_factor", None)
            if factor is not None and request.session.get(_VERIFIED) != factor.pk:
                auth.logout(request)
            elif factor is None and second_factor.is_required(request.user):
                return self._lead_to_enrolment(request)
        return self._get_response(request)

    def _lead_to_enrolment(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in {reverse(name) for name in _REACHABLE}:
            return self._get_response(request)
        if request.path_info.startswith(ADMIN):
            return redirect("admin:second_factor")
        raise PermissionDenied(gettext("Enrol a second factor first."))


def _is_local(request: HttpRequest) -> bool:
    """Return True if the session is that of an account of this site."""
    return (
        request.session.get(auth.BACKEND_SESSION_KEY) == BACKEND
        and request.user.is_authenticated
        and not hasattr(request.user, "directory_account")
    )
