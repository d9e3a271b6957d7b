"""Sign-on by OpenID Connect: the way to the provider, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from urllib import parse

import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators import http

from ipam_site.sign_on import oidc


def start_url(next_url: str) -> str:
    """Return the URL of the button on the sign-in page, "" without OpenID Connect."""
    if not oidc.is_enabled():
        return ""
    query = {auth.REDIRECT_FIELD_NAME: next_url} if next_url else {}
    return f"{reverse('sign_on')}?{parse.urlencode(query)}"


@http.require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    return _answer(request, lambda client: OAuth2LoginView.adapter_view(client)(request))


@http.require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the person whom the provider's answer names."""

    def finish(client: oidc.OIDCClient) -> HttpResponse:
        issuer = client.openid_config["issuer"]
        if request.GET.get("iss", issuer) != issuer:
            raise oidc.AnswerInvalid("another provider has answered")  # RFC 9207
        response: HttpResponse = OAuth2CallbackView.adapter_view(client)(request)
        return response

    return _answer(request, finish)


def _answer(
    request: HttpRequest, respond: Callable[[oidc.OIDCClient], HttpResponse]
) -> HttpResponse:
    if not oidc.is_enabled():
        return redirect("admin:login")
    try:
        return respond(oidc.OIDCClient(request))
    except (requests.RequestException, OAuth2Error, *oidc.NOT_AS_SPECIFIED) as error:
        return oidc.failure(error)
