"""Sign-on by OpenID Connect: the way to the provider, and the way back."""

from __future__ import annotations

import logging
from urllib import parse

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators import http

from claims.access import directory
from ipam_site.http import error_pages, problems
from ipam_site.sign_on import gate, oidc

ID_TOKEN, _NEXT = "sign_on_id_token", "sign_on_next"

log = logging.getLogger(__name__)


def start_url(next_url: str) -> str:
    """Return the URL of the button on the sign-in page, "" without OpenID Connect."""
    if not oidc.is_enabled():
        return ""
    query = {auth.REDIRECT_FIELD_NAME: next_url} if next_url else {}
    return f"{reverse('sign_on')}?{parse.urlencode(query)}"


@http.require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    if not oidc.is_enabled():
        return redirect("admin:login")
    request.session[_NEXT] = request.GET.get(auth.REDIRECT_FIELD_NAME, "")
    try:
        return oidc.begin(request, request.build_absolute_uri(reverse("sign_on_callback")))
    except oidc.ProviderUnreachable as error:
        return _unreachable(error)
    except oidc.AnswerInvalid as error:
        return _invalid(error)


@http.require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the person whom the provider's answer names."""
    if not oidc.is_enabled():
        return redirect("admin:login")
    try:
        person, id_token = oidc.finish(request)
        user = directory.sign_in(person, request_id=request.META.get(problems.REQUEST_ID, ""))
    except oidc.StateUnknown:
        text = gettext("This sign-in was finished before, or has expired. Sign in again.")
        return _page(400, text)
    except oidc.ProviderUnreachable as error:
        return _unreachable(error)
    except oidc.AnswerInvalid as error:
        return _invalid(error)
    except directory.SignInRefused as refusal:
        log.warning("sign-on refused: %s", refusal.code)
        if not request.session.exists(request.session.session_key or ""):
            request.session.flush()  # it ended with the others of the account, and must not be saved
        return _page(403, refusal.message)
    next_url = request.session.pop(_NEXT, "")
    auth.login(request, user, backend=gate.BACKEND)
    request.session[ID_TOKEN] = id_token
    return redirect(target_url(request, next_url))


def target_url(request: HttpRequest, next_url: str) -> str:
    """Return where a sign-in leads to: `next_url` if it is of this site."""
    is_ours = url_has_allowed_host_and_scheme(
        next_url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return next_url if is_ours else settings.LOGIN_REDIRECT_URL


def _unreachable(error: Exception) -> HttpResponse:
    log.warning("sign-on: the provider cannot be reached: %s", error)
    text = gettext("The provider of the sign-on does not answer. Try again later.")
    response = _page(503, text)
    response.headers["Retry-After"] = "30"
    return response


def _invalid(error: Exception) -> HttpResponse:
    log.warning("sign-on refused: the answer is not valid: %s", error)
    text = gettext(
        "The answer of the sign-on provider was not accepted. The log of this site has the details."
    )
    return _page(403, text)


def _page(status: int, text: str) -> HttpResponse:
    return error_pages.plain(status, text, title=gettext("Sign-in refused"))
