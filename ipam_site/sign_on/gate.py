"""What a session may reach: nothing with another second factor than it has shown, or one that is still to be enrolled.

And how long a passkey has to sign what the session remembers: once, for five minutes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from allauth.mfa.webauthn.internal.auth import STATE_SESSION_KEY
from django.conf import settings
from django.contrib import admin, auth
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ipam_site.http import middleware
from pools.platform import events, second_factor
from pools.platform.admin import pages

BACKEND = "ipam_site.backends.Accounts"
PAGES = f"{middleware.ADMIN}second-factor/"
_SHOWN = "second_factor"  # in the session: ids of app, passkeys or recovery codes that were shown
_CHALLENGED_AT = "passkey_challenged_at"  # in the session
_CHALLENGE_SECONDS = 300  # as long as browsers wait for a passkey by default


def record_shown(request: HttpRequest, ids: Sequence[int]) -> None:
    """Record in the session what was shown. Sessions that have shown nothing of what the user has, end."""
    request.session[_SHOWN] = list(ids)


class ChallengeMiddleware(middleware.Middleware):
    """Let the challenge of a session be answered once, right or wrong, and in time."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PAGES):
            return self.get_response(request)
        challenge = request.session.get(STATE_SESSION_KEY)
        if time.time() - request.session.get(_CHALLENGED_AT, 0) > _CHALLENGE_SECONDS:
            request.session.pop(STATE_SESSION_KEY, None)
        response = self.get_response(request)
        if request.session.get(STATE_SESSION_KEY) != challenge:
            request.session[_CHALLENGED_AT] = time.time()
        elif "credential" in request.POST:
            request.session.pop(STATE_SESSION_KEY, None)
        return response


class SecondFactorMiddleware(middleware.Middleware):
    """End sessions that rest on another second factor than their user has, and lead to the enrolment who must have one."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # A request without a session, as with a token, does not ask for one: answers would vary by cookie.
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return self.get_response(request)
        user: Any = request.user
        is_managed = request.path_info.startswith(PAGES) and user.is_authenticated
        if is_managed and not second_factor.is_possible(user):
            raise PermissionDenied(_AT_THE_DIRECTORY)
        if _is_local(request):
            if not _is_shown(request):
                auth.logout(request)
            elif is_managed:
                return self._manage(request)
            elif not user.authenticator_ids and second_factor.is_required(user):
                return self._lead_to_enrolment(request)
        return self.get_response(request)

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        """Remove the object of a page: the frame of the admin would link to the list of its model, which has none."""
        if request.path_info.startswith(PAGES):
            response.context_data.pop("object", None)
        return response

    def _manage(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a page of the second factor; after a change this session rests on what the user has now."""
        user: Any = request.user
        if request.method != "POST":
            return self.get_response(request)
        with events.recorded_by(pages.author(request)):
            response = self.get_response(request)
        ids = second_factor.shown_by(user)
        if set(ids) != set(user.authenticator_ids) and request.user == user:
            record_shown(request, ids)
            request.session.cycle_key()
        return response

    def _lead_to_enrolment(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in {reverse("admin:logout"), reverse("admin:jsi18n")}:
            return self.get_response(request)
        if request.path_info.startswith(middleware.ADMIN):
            return redirect("mfa_index")
        raise PermissionDenied(gettext("Enrol a second factor first."))


def theme(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the admin's frame for the pages of django-allauth (a context processor)."""
    match = request.resolver_match
    if match is None or not str(match.url_name).startswith(("mfa_", "account_")):
        return {}
    return {
        **admin.site.each_context(request),
        "title": gettext("Second factor"),
        "is_second_factor_missing": request.user.is_authenticated
        and not second_factor.is_enrolled(request.user)
        and second_factor.is_required(request.user),
    }


def _is_local(request: HttpRequest) -> bool:
    """Return True if the session is that of an account of this site."""
    user: Any = request.user
    is_ours = request.session.get(auth.BACKEND_SESSION_KEY) == BACKEND and user.is_authenticated
    return is_ours and not second_factor.is_of_directory(user)


def _is_shown(request: HttpRequest) -> bool:
    """Return True if the session has shown something of what the user has; without a second factor, nothing."""
    user: Any = request.user
    shown, ids = set(request.session.get(_SHOWN, ())), set(user.authenticator_ids)
    return bool(shown & ids) or shown == ids


_AT_THE_DIRECTORY = _(
    "This account does not sign in with a password of this site: its second factor is at the directory of the"
    " organization."
)
