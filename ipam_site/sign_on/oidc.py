"""The client of the OpenID Connect provider: Authlib's, stricter about what it accepts.

The code flow with PKCE, state and nonce; an ID token is accepted with a signature by a key of the provider
(RS256, ES256), for our issuer and client only, until it expires.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import requests
from authlib.common.urls import add_params_to_uri
from authlib.integrations.base_client.errors import MismatchingStateError, OAuthError
from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from joserfc.errors import JoseError

from claims.access.directory import Person
from pools.models import DirectorySource
from pools.platform.outbound import connection_errors

ALGORITHMS = ["RS256", "ES256"]
_LEEWAY = 60  # seconds by which clocks may differ
_TIMEOUT = 10
_METADATA_SECONDS = 3600  # then the provider's endpoints and keys are read anew
_ENDPOINTS = {"authorization_endpoint", "token_endpoint", "jwks_uri"}
# What Authlib raises for an answer that lacks something, or has it of another type.
_NOT_AS_SPECIFIED = (KeyError, TypeError, AttributeError, ValueError, RuntimeError)
_LONGEST_SUBJECT = 255  # OpenID Connect Core, 2


class ProviderUnreachable(Exception):
    """The provider does not answer, or answers with an error of its own."""


class AnswerInvalid(Exception):
    """The provider's answer is not one that this site may accept; the text is for the log."""


class StateUnknown(Exception):
    """The answer belongs to no sign-in that this browser has begun, or to one that was answered before."""


class _Session(OAuth2Session):
    def request(self, *args: Any, **options: Any) -> Any:
        # For each request: REQUESTS_CA_BUNDLE would win over the session's own.
        if settings.IPAM_OIDC_CA_FILE:
            options["verify"] = settings.IPAM_OIDC_CA_FILE
        return super().request(*args, **options)  # type: ignore[no-untyped-call]


class _App(DjangoOAuth2App):
    client_cls = _Session

    def load_server_metadata(self) -> dict[str, Any]:
        try:
            # Authlib has no types.
            return self._validated(super().load_server_metadata())  # type: ignore[no-untyped-call]
        except AnswerInvalid:
            self.server_metadata = {}  # read anew next time
            raise
        except (TypeError, AttributeError) as error:
            self.server_metadata = {}
            raise AnswerInvalid("the provider's description of itself cannot be read") from error

    def fetch_jwk_set(self, force: bool = False) -> dict[str, Any]:
        """Return the keys that may have signed an ID token: one of a kind that Authlib cannot read would void all."""
        keys = super().fetch_jwk_set(force)["keys"]  # type: ignore[no-untyped-call]
        return {"keys": [key for key in keys if key["kty"] in {"RSA", "EC"}]}

    @staticmethod
    def _validated(metadata: dict[str, Any]) -> dict[str, Any]:
        if metadata.get("issuer", "").rstrip("/") != settings.IPAM_OIDC_ISSUER.rstrip("/"):
            raise AnswerInvalid(f"the provider calls itself {_redacted(metadata.get('issuer'))!r}")
        for name in _ENDPOINTS | (metadata.keys() & {"userinfo_endpoint"}):
            if not str(metadata.get(name, "")).startswith("https://"):
                raise AnswerInvalid(f"the provider's {name} is no https URL")
        # What the provider itself would accept, such as `none` or a shared secret, is not asked.
        metadata["id_token_signing_alg_values_supported"] = ALGORITHMS
        return metadata


_lock = threading.Lock()
_app: tuple[float, tuple[object, ...], Any] | None = None


def is_enabled() -> bool:
    return bool(settings.IPAM_OIDC_ISSUER)


def _client() -> Any:
    """Return the client of this process, with a new one each hour: endpoints and keys change."""
    global _app  # noqa: PLW0603  # one for the process
    configuration = (
        settings.IPAM_OIDC_ISSUER,
        settings.IPAM_OIDC_CLIENT_ID,
        settings.IPAM_OIDC_CLIENT_SECRET,
        tuple(settings.IPAM_OIDC_SCOPES),
    )
    with _lock:
        now = time.monotonic()
        if _app is None or _app[1] != configuration or now - _app[0] > _METADATA_SECONDS:
            _app = now, configuration, _new_client()
        return _app[2]


def _new_client() -> Any:
    issuer = settings.IPAM_OIDC_ISSUER.rstrip("/")
    return _App(  # type: ignore[no-untyped-call]
        DjangoIntegration("sign_on"),  # type: ignore[no-untyped-call]
        "sign_on",
        client_id=settings.IPAM_OIDC_CLIENT_ID,
        client_secret=settings.IPAM_OIDC_CLIENT_SECRET or None,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": " ".join(settings.IPAM_OIDC_SCOPES),
            "code_challenge_method": "S256",
            "default_timeout": _TIMEOUT,
            "leeway": 0,  # an access token of one minute is used at once
        },
    )


def begin(request: HttpRequest, callback: str) -> HttpResponse:
    """Return the redirect to the provider. Raises ProviderUnreachable, AnswerInvalid."""
    try:
        response: HttpResponse = _client().authorize_redirect(request, callback)
    except requests.RequestException as error:
        raise ProviderUnreachable(_redacted(error)) from error
    return response


def finish(request: HttpRequest) -> tuple[Person, str]:
    """Return the person whom the provider's answer names, and the ID token.

    Raises StateUnknown, AnswerInvalid, ProviderUnreachable.
    """
    client = _client()
    try:
        issuer = client.load_server_metadata()["issuer"]
        if request.GET.get("iss", issuer) != issuer:
            raise AnswerInvalid("another provider has answered")  # RFC 9207
        token = client.authorize_access_token(
            request,
            leeway=_LEEWAY,
            claims_options={
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": settings.IPAM_OIDC_CLIENT_ID},
            },
        )
        claims = token.get("userinfo")
        if not claims:
            raise AnswerInvalid("the provider sent no ID token")
        return _person(_with_userinfo(client, token, claims)), token["id_token"]
    except MismatchingStateError as error:
        raise StateUnknown from error
    except requests.RequestException as error:
        raise ProviderUnreachable(_redacted(error)) from error
    except (OAuthError, JoseError, *_NOT_AS_SPECIFIED) as error:
        raise AnswerInvalid(f"{type(error).__name__}: {_redacted(error)!r}") from error


def _redacted(text: object) -> str:
    """Return what the provider says, for the log: it may repeat what it was sent."""
    return connection_errors.printable_message(str(text), [settings.IPAM_OIDC_CLIENT_SECRET])


def _with_userinfo(
    client: Any, token: Mapping[str, Any], claims: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the claims, with those that only the userinfo endpoint has."""
    needed = (settings.IPAM_OIDC_USERNAME_CLAIM, settings.IPAM_OIDC_GROUPS_CLAIM)
    metadata = client.load_server_metadata()
    if all(name in claims for name in needed) or "userinfo_endpoint" not in metadata:
        return claims
    more = client.userinfo(token=token)
    if more.get("sub") != claims["sub"]:
        raise AnswerInvalid("the userinfo endpoint speaks of another person")
    return {**more, **claims}


def _person(claims: Mapping[str, Any]) -> Person:
    subject = claims["sub"]
    if not (isinstance(subject, str) and subject.isprintable()) or not (
        0 < len(subject) <= _LONGEST_SUBJECT
    ):
        raise AnswerInvalid("the claim sub is not valid")
    username = claims.get(settings.IPAM_OIDC_USERNAME_CLAIM)
    if not isinstance(username, str):
        raise AnswerInvalid(f"the claim {settings.IPAM_OIDC_USERNAME_CLAIM} is missing")
    groups = claims.get(settings.IPAM_OIDC_GROUPS_CLAIM) or []
    # How Entra ID says so, by the length of its answer.
    if claims.get("hasgroups") or settings.IPAM_OIDC_GROUPS_CLAIM in (
        claims.get("_claim_names") or ()
    ):
        raise AnswerInvalid(
            "the person has more groups than the provider sends: let it send assigned groups only"
        )
    if isinstance(groups, str):
        groups = [groups]
    if not isinstance(groups, list):
        raise AnswerInvalid(f"the claim {settings.IPAM_OIDC_GROUPS_CLAIM} is no list")
    email = claims.get(settings.IPAM_OIDC_EMAIL_CLAIM, "")
    return Person(
        source=DirectorySource.OIDC,
        subject=f"{settings.IPAM_OIDC_ISSUER.rstrip('/')} {subject}",
        username=username,
        email=email if isinstance(email, str) else "",
        groups=[group for group in groups if isinstance(group, str)],
    )


def logout_url(id_token: str, back: str) -> str:
    """Return the URL that ends the session at the provider too, "" if it has none."""
    try:
        endpoint = _client().load_server_metadata().get("end_session_endpoint", "")
    except (requests.RequestException, ValueError, AnswerInvalid):
        return ""
    if not endpoint.startswith("https://"):
        return ""
    query = {
        "id_token_hint": id_token,
        "client_id": settings.IPAM_OIDC_CLIENT_ID,
        "post_logout_redirect_uri": back,
    }
    return str(add_params_to_uri(endpoint, query))  # type: ignore[no-untyped-call]
