"""What a session may reach: nothing with another second factor than it has shown, or one that is still to be enrolled.

Who signs in with a password of this site, and which permissions there are besides those of Django
(AUTHENTICATION_BACKENDS). How long a passkey has to sign what the session remembers: once, for five minutes. And what
django-allauth asks this site: whom it signs in, how, and how secrets are stored (ACCOUNT_ADAPTER, MFA_ADAPTER).
"""

import math
import time
from collections.abc import Sequence
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal.auth import STATE_SESSION_KEY
from django.conf import settings
from django.contrib import admin, auth
from django.contrib.auth import backends
from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import Model, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.access import cluster_owners
from ipam_site.http import middleware, problems
from pools.models import DirectoryAccount
from pools.platform import events, login_limits, second_factor
from pools.platform.admin import pages
from pools.platform.rest import authentication


class Accounts(backends.ModelBackend):
    """Django's accounts, of which those of a directory sign in there, and never with a password of this site."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> Any:
        user = super().authenticate(request, username, password, **kwargs)
        if user is not None and DirectoryAccount.objects.filter(user_id=user.pk).exists():
            return None
        return user

    def get_user(self, user_id: int) -> User | None:
        """Return the user of a session with preferences and what decides on its second factor, in one query."""
        factors = Authenticator.objects.filter(user_id=OuterRef("pk")).values("pk")
        users = User.objects.select_related("directory_account", "preferences")
        user = users.annotate(authenticator_ids=ArraySubquery(factors)).filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


class ClusterOwners(backends.BaseBackend):
    """Grants VM owners by RoleBindings of clusters their permissions; it authenticates nobody."""

    def get_group_permissions(self, user_obj: Any, obj: Model | None = None) -> set[str]:
        return set() if obj is not None else set(cluster_owners.rights(user_obj))

    def has_perm(self, user_obj: Any, perm: str, obj: Model | None = None) -> bool:
        """Return True if the user has the permission.

        Django's own method collects all permissions for each call, and a page makes dozens.
        """
        return obj is None and perm in cluster_owners.rights(user_obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return any(name.startswith(f"{app_label}.") for name in cluster_owners.rights(user_obj))


BACKEND = "ipam_site.sign_on.gate.Accounts"
PAGES = f"{middleware.ADMIN}second-factor/"
_PASSWORD = "sign_on_password"  # noqa: S105  # in the session: the password hash with which a sign-in began
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


# --- what django-allauth asks this site -----------------------------------------------------------


def count_attempt(request: HttpRequest, name: str) -> login_limits.Attempt:
    """Count an attempt of an account; above the limit the answer of the request is a page with 429."""
    attempt = login_limits.count_attempt(name, authentication.client_address(request))
    if attempt.retry_after:
        minutes = math.ceil(attempt.retry_after / 60)
        text = ngettext(
            "Too many sign-ins have failed. Try again in %(minutes)d minute.",
            "Too many sign-ins have failed. Try again in %(minutes)d minutes.",
            minutes,
        )
        page = problems.plain_page(
            429, text % {"minutes": minutes}, title=gettext("Sign-in refused")
        )
        page.headers["Retry-After"] = str(attempt.retry_after)
        raise ImmediateHttpResponse(page)
    return attempt


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002  # allauth's signature
        return False

    def is_safe_url(self, url: str) -> bool:
        """Return True for URLs of the host of the request; allauth's own also accepts other hosts of this site."""
        request = context.request
        return url_has_allowed_host_and_scheme(
            url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
        )

    def pre_login(self, request: HttpRequest, user: Any, **options: Any) -> HttpResponse | None:
        request.session[_PASSWORD] = user.get_session_auth_hash()
        return super().pre_login(request, user, **options)

    def login(self, request: HttpRequest, user: Any) -> None:
        """Sign in, and record in the session which second factor was shown, unless the password was replaced before."""
        began_with = request.session.pop(_PASSWORD, "")
        if not constant_time_compare(began_with, user.get_session_auth_hash()):
            request.session.flush()
            raise ImmediateHttpResponse(redirect("admin:login"))
        shown = [
            record["id"]
            for record in get_authentication_records(request, user)
            if record["method"] == "mfa"
        ]
        super().login(request, user)
        record_shown(request, shown)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Return how a signed-in user proves the identity again: with the second factor, if there is one."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if second_factor.is_enrolled(user):
            return [method for method in methods if method["id"].startswith("mfa")]
        return methods

    def reauthenticate(self, user: Any, password: str) -> bool:
        """Return True if the password is that of the signed-in user; wrong ones count as failed sign-ins."""
        attempt = count_attempt(context.request, user.get_username())
        if not user.check_password(password):
            return False
        login_limits.record_success(attempt)
        return True


class SecondFactorAdapter(DefaultMFAAdapter):
    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": _(
            "This code is wrong, was used before, or came too soon after a wrong one. Wait for the next code."
        ),
    }

    def encrypt(self, text: str) -> str:
        return second_factor.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return second_factor.unseal(encrypted_text)

    def is_mfa_enabled(self, user: Any, types: Any = None) -> bool:
        """Return True if the account has a second factor of these types; a directory account has its own there."""
        return not second_factor.is_of_directory(user) and super().is_mfa_enabled(user, types)
