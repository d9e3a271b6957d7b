"""What a session may reach: nothing with another second factor than it has shown, or one that is still to be enrolled."""

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
from pools.platform.second_factor import Proof

BACKEND = "ipam_site.backends.Accounts"
# In the session: the ids of the factor that was shown, and of the passkey that showed it, if one did.
_VERIFIED, _PASSKEY = "second_factor", "second_factor_passkey"
_REACHABLE = (
    "admin:second_factor",
    "admin:passkey_creation_options",
    "admin:passkey_add",
    "admin:logout",
    "admin:jsi18n",
)


def sign_in(request: HttpRequest, user: Any, proof: Proof) -> None:
    """Sign in a user whose password and second factor, or passkey, were right."""
    auth.login(request, user, backend=BACKEND)
    mark_verified(request, proof)


def mark_verified(request: HttpRequest, proof: Proof | None) -> None:
    """Record in the session what was shown; None if the user has just removed the second factor.

    Sessions that have shown another factor, or none, end.
    """
    request.session[_VERIFIED] = proof and proof.factor.pk
    request.session[_PASSKEY] = proof and proof.passkey and proof.passkey.pk
    request.session.cycle_key()


class SecondFactorMiddleware:
    """End sessions that rest on another second factor than their user has, and lead to the enrolment who must have one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # A request without a session, as with a token, does not ask for one: answers would vary by cookie.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and _is_local(request):
            factor = getattr(request.user, "second_factor", None)
            if not _is_shown(request, factor):
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


def _is_shown(request: HttpRequest, factor: SecondFactor | None) -> bool:
    """Return True if the session has shown this factor, with a passkey that is still enrolled if it was one."""
    user: Any = request.user
    return request.session.get(_VERIFIED) == (factor and factor.pk) and (
        request.session.get(_PASSKEY) in {None, *user.passkey_ids}
    )


def _is_local(request: HttpRequest) -> bool:
    """Return True if the session is that of an account of this site."""
    return (
        request.session.get(auth.BACKEND_SESSION_KEY) == BACKEND
        and request.user.is_authenticated
        and not hasattr(request.user, "directory_account")
    )
