"""What django-allauth asks this site: whom it signs in, how, and how secrets are stored (ACCOUNT_ADAPTER, MFA_ADAPTER)."""

from __future__ import annotations

import math
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ipam_site.http import error_pages
from ipam_site.sign_on import gate
from pools.platform import login_limits, second_factor
from pools.platform.rest import authentication

_PASSWORD = "sign_on_password"  # noqa: S105  # in the session: the password hash with which a sign-in began


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
        page = error_pages.plain(429, text % {"minutes": minutes}, title=gettext("Sign-in refused"))
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
        gate.record_shown(request, shown)

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
