"""Sign-in with a passkey alone, and the options with which browsers sign."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from claims.access import cluster_owners
from ipam_site.http import error_pages
from ipam_site.sign_on import attempts, ceremony, gate, second_step, views
from pools.core import errors
from pools.models import Passkey
from pools.platform import login_limits, passkeys, second_factor


def is_offered(request: HttpRequest) -> bool:
    """Return True if a passkey of this host is enrolled, for any account."""
    try:
        site = ceremony.site(request)
    except errors.PasskeysUnavailable:
        return False
    return Passkey.objects.filter(rp_id=site.rp_id).exists()


@never_cache
@require_POST
def sign_in_options(request: HttpRequest) -> HttpResponse:
    """Return the options for a passkey of whoever has one on the device."""
    return _options(request, None, ceremony.SIGN_IN)


@never_cache
@require_POST
def proof_options(request: HttpRequest) -> HttpResponse:
    """Return the options for a passkey of the user who is signed in, or whose password was right."""
    user: Any = request.user
    if not user.is_authenticated:
        user = second_step.pending_user(request)
    if user is None:
        return redirect("admin:index")  # and from there to the sign-in
    return _options(request, user, ceremony.PROVE)


def _options(request: HttpRequest, user: User | None, purpose: str) -> HttpResponse:
    try:
        options, state = passkeys.request_options(user, ceremony.site(request))
    except errors.PasskeysUnavailable as error:
        return ceremony.problem(error).response(request)
    ceremony.remember(request, purpose, state)
    return JsonResponse(options)


@never_cache
@require_POST
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in the user whose passkey signed, if the device verified that it is the user."""
    try:
        user = passkeys.owner(request.POST.get("credential", ""), ceremony.site(request))
        name = user.get_username() if user is not None else ""  # unknown passkeys share a limit
        attempt = login_limits.count_attempt(name, attempts.address(request))
        if attempt.retry_after:
            return _throttled(attempt.retry_after)
        if user is None or not _may_sign_in(user):
            raise errors.PasskeyUnknown
        reason = gettext("sign-in without a password")
        proof = ceremony.prove(request, user, ceremony.SIGN_IN, reason=reason)
    except errors.InvalidInput as error:
        return error_pages.plain(400, ceremony.text(error), title=gettext("Sign-in refused"))
    login_limits.record_success(attempt)
    gate.sign_in(request, user, proof)
    return redirect(views.target_url(request, request.POST.get(REDIRECT_FIELD_NAME, "")))


def _may_sign_in(user: User) -> bool:
    """Return True if the password of the user would sign in, too."""
    is_welcome = user.is_staff or bool(cluster_owners.rights(user))
    return user.is_active and is_welcome and second_factor.is_possible(user)


def _throttled(retry_after: int) -> HttpResponse:
    text = attempts.too_many(retry_after).message
    response = error_pages.plain(429, str(text), title=gettext("Sign-in refused"))
    response.headers["Retry-After"] = str(retry_after)
    return response
