"""Sign-on by OpenID Connect: django-allauth's client, stricter about what it accepts (SOCIALACCOUNT_ADAPTER).

The code flow with PKCE, state and nonce; an ID token is accepted with a signature by a key of the provider
(RS256, ES256), for our issuer and client only, until it expires. Who comes is an account of `claims.access.directory`,
which turns groups into roles and namespaces; allauth's own table of accounts stays empty.
"""

import functools
import logging
import secrets
from collections.abc import Mapping
from typing import Any

import jwt
import requests
from allauth.account.utils import perform_login
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal.httpkit import add_query_params
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext
from django.views.decorators import http

from claims.access import directory
from claims.access.directory import Person
from ipam_site.http import problems
from ipam_site.sign_on import gate
from pools.models import DirectorySource
from pools.platform.outbound import faults

PROVIDER = "sign-on"
LOGOUT_URL = "sign_on_logout_url"  # in the session: where the person signs out at the provider
_ALGORITHMS = ["RS256", "ES256"]
_LEEWAY = 60  # seconds by which clocks may differ
_REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]
_LONGEST_SUBJECT = 255  # OpenID Connect Core, 2
# What an answer raises that lacks something, or has it of another type.
_NOT_AS_SPECIFIED = (KeyError, TypeError, AttributeError, ValueError, jwt.PyJWTError)

log = logging.getLogger(__name__)


class AnswerInvalid(OAuth2Error):
    """The provider's answer is not one that this site may accept; the text is for the log."""


class OIDCClient(OpenIDConnectOAuth2Adapter):
    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request, PROVIDER)

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return what the provider says of itself. Raises what `_answer` catches."""
        metadata: dict[str, Any] = super().openid_config
        if metadata["issuer"].rstrip("/") != settings.IPAM_OIDC_ISSUER.rstrip("/"):
            raise AnswerInvalid(f"the provider calls itself {metadata['issuer']!r}")
        needed = {"authorization_endpoint", "token_endpoint", "jwks_uri"}
        for name in needed | (metadata.keys() & {"userinfo_endpoint"}):
            if not str(metadata.get(name, "")).startswith("https://"):
                raise AnswerInvalid(f"the provider's {name} is no https URL")
        return metadata

    @property
    def basic_auth(self) -> bool:  # type: ignore[override]  # a property of allauth's own, too
        """Return True if the client names itself by HTTP Basic, as it does where nothing else is published (Discovery, 3)."""
        default = ["client_secret_basic"]
        methods = self.openid_config.get("token_endpoint_auth_methods_supported", default)
        return "client_secret_basic" in methods

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **options: Any
    ) -> SocialLogin:
        """Return the claims of the person, in a form that allauth passes on to `pre_social_login`."""
        id_token = options["response"].get("id_token")
        if not id_token:
            raise AnswerInvalid("the provider sent no ID token")
        verified = self._decode_id_token(app, id_token)
        _require_ours(verified, app.client_id)
        claims = self._with_userinfo(verified, token.token)
        account = SocialAccount(
            provider=PROVIDER,
            uid=claims["sub"],
            extra_data={"claims": claims, "logout_url": self._logout_url(request, id_token)},
        )
        return SocialLogin(user=User(), account=account)

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """Return the verified claims; allauth's own does not look at the signature."""
        with get_adapter().get_requests_session() as session:
            response = session.get(self.openid_config["jwks_uri"])
            response.raise_for_status()
        keys = jwt.PyJWKSet.from_dict(response.json())  # without those that cannot be read
        return jwt.decode(
            id_token,
            keys[jwt.get_unverified_header(id_token)["kid"]].key,
            algorithms=_ALGORITHMS,
            audience=app.client_id,
            issuer=self.openid_config["issuer"],
            leeway=_LEEWAY,
            options={"require": _REQUIRED},
        )

    def _with_userinfo(self, claims: Mapping[str, Any], access_token: str) -> Mapping[str, Any]:
        """Return the claims, with those that only the userinfo endpoint has."""
        needed = (
            settings.IPAM_OIDC_USERNAME_CLAIM,
            settings.IPAM_OIDC_GROUPS_CLAIM,
            settings.IPAM_OIDC_EMAIL_CLAIM,
        )
        is_complete = all(_claim(claims, name) is not None for name in needed)
        if is_complete or "userinfo_endpoint" not in self.openid_config:
            return claims
        more: dict[str, Any] = self._fetch_user_info(access_token)
        if more.get("sub") != claims["sub"]:
            raise AnswerInvalid("the userinfo endpoint speaks of another person")
        return {**more, **claims}

    def _logout_url(self, request: HttpRequest, id_token: str) -> str:
        endpoint = str(self.openid_config.get("end_session_endpoint", ""))
        if not endpoint.startswith("https://"):
            return ""
        back = request.build_absolute_uri(reverse("admin:login"))
        query = {
            "id_token_hint": id_token,
            "client_id": settings.IPAM_OIDC_CLIENT_ID,
            "post_logout_redirect_uri": back,
        }
        return str(add_query_params(endpoint, query))


class OIDCProvider(OpenIDConnectProvider):
    def get_oauth2_adapter(self, request: HttpRequest) -> OIDCClient:
        return OIDCClient(request)

    def redirect(self, request: HttpRequest, *_: Any, **options: Any) -> HttpResponse:
        """Redirect to the provider, with nothing of the request but where it leads afterwards, and to another account."""
        nonce = secrets.token_urlsafe(32)
        parameters = {"nonce": nonce}
        if request.GET.get("prompt") == "select_account":
            parameters["prompt"] = "select_account"
        response: HttpResponse = super().redirect(
            request,
            AuthProcess.LOGIN,
            options.get("next_url"),
            auth_params=parameters,
            nonce=nonce,
        )
        return response


class DirectoryAdapter(DefaultSocialAccountAdapter):
    """Signs in whom the provider names, with the rights of the groups of that person."""

    def get_provider(
        self, request: HttpRequest, provider: Any = None, client_id: Any = None  # noqa: ARG002  # allauth's signature
    ) -> OIDCProvider:  # fmt: skip
        app = SocialApp(
            provider=OpenIDConnectProvider.id,
            provider_id=PROVIDER,
            name=settings.IPAM_OIDC_NAME,
            client_id=settings.IPAM_OIDC_CLIENT_ID,
            secret=settings.IPAM_OIDC_CLIENT_SECRET or "",
            settings={
                "server_url": settings.IPAM_OIDC_ISSUER.rstrip("/"),
                "oauth_pkce_enabled": True,
                "scope": settings.IPAM_OIDC_SCOPES,
            },
        )
        return OIDCProvider(request, app)

    def get_requests_session(self) -> requests.Session:
        session: requests.Session = super().get_requests_session()  # type: ignore[no-untyped-call]
        if ca_file := settings.IPAM_OIDC_CA_FILE:
            # For each request: REQUESTS_CA_BUNDLE would win over the session's own.
            session.request = functools.partial(session.request, verify=ca_file)  # type: ignore[method-assign]
        return session

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None  # noqa: ARG002  # allauth's signature
    ) -> None:  # fmt: skip
        if exception is None and "state" not in extra_context:
            text = gettext("This sign-in was finished before, or has expired. Sign in again.")
            raise ImmediateHttpResponse(refusal(400, text))
        raise ImmediateHttpResponse(failure(exception or AnswerInvalid(str(error))))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Sign in the person whom the claims name, instead of an account of allauth's own."""
        claims, nonce = sociallogin.account.extra_data["claims"], sociallogin.state["nonce"]
        person = _person(claims, nonce)
        try:
            user: Any = directory.sign_in(
                person, request_id=request.META.get(problems.REQUEST_ID, "")
            )
        except directory.SignInRefused as refused:
            log.warning("sign-on refused: %s", refused.code)
            if not request.session.exists(request.session.session_key or ""):
                request.session.flush()  # it ended with the others of the account, and must not be saved
            raise ImmediateHttpResponse(refusal(403, refused.message)) from refused
        user.backend = gate.BACKEND
        response = perform_login(request, user, redirect_url=sociallogin.get_redirect_url(request))
        request.session[LOGOUT_URL] = sociallogin.account.extra_data["logout_url"]
        raise ImmediateHttpResponse(response)


# --- pages ----------------------------------------------------------------------------------------


def is_enabled() -> bool:
    return bool(settings.IPAM_OIDC_ISSUER)


def start_url(next_url: str) -> str:
    """Return the URL of the button on the sign-in page, "" without OpenID Connect."""
    if not is_enabled():
        return ""
    query = {auth.REDIRECT_FIELD_NAME: next_url} if next_url else {}
    return str(add_query_params(reverse("sign_on"), query))


@http.require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    return _answer(request, OAuth2LoginView)


@http.require_safe
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:  # noqa: ARG001  # there is one
    """Sign in the person whom the provider's answer names."""
    return _answer(request, OAuth2CallbackView)


def _answer(request: HttpRequest, view: Any) -> HttpResponse:
    if not is_enabled():
        return redirect("admin:login")
    client = OIDCClient(request)
    try:
        if "iss" in request.GET and request.GET["iss"] != client.openid_config["issuer"]:
            raise AnswerInvalid("another provider has answered")  # RFC 9207
        response: HttpResponse = view.adapter_view(client)(request)
    except (requests.RequestException, OAuth2Error, *_NOT_AS_SPECIFIED) as error:
        return failure(error)
    return response


def failure(error: Exception) -> HttpResponse:
    """Return the page of a provider that does not answer, or of an answer that cannot be accepted."""
    # What the provider says may repeat what it was sent.
    text = f"{type(error).__name__}: {error}"
    message = faults.printable_message(text, [settings.IPAM_OIDC_CLIENT_SECRET])
    if isinstance(error, requests.RequestException):
        log.warning("sign-on: the provider cannot be reached: %s", message)
        text = gettext("The provider of the sign-on does not answer. Try again later.")
        response = refusal(503, text)
        response.headers["Retry-After"] = "30"
        return response
    log.warning("sign-on refused: the answer is not valid: %s", message)
    return refusal(
        403,
        gettext(
            "The answer of the sign-on provider was not accepted. The log of this site has the details."
        ),
    )


def refusal(status: int, text: str) -> HttpResponse:
    """Return a page that says why nobody was signed in, with a link to sign in as somebody else."""
    link = (f"{reverse('sign_on')}?prompt=select_account", gettext("Sign in with another account"))
    return problems.plain_page(status, text, title=gettext("Sign-in refused"), link=link)


def _require_ours(claims: Mapping[str, Any], client: str) -> None:
    """Raise AnswerInvalid for what PyJWT leaves open: a token also for other clients, a subject that is none."""
    is_for_us_alone = claims["aud"] in (client, [client])
    if claims.get("azp", client if is_for_us_alone else "") != client:
        raise AnswerInvalid("the ID token is for another client")
    if not claims["sub"].isprintable() or not 0 < len(claims["sub"]) <= _LONGEST_SUBJECT:
        raise AnswerInvalid("the claim sub is not valid")


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim, of which `name` may be a path (`realm_access.roles`), or None."""
    value: Any = claims
    if name in claims:
        return claims[name]
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _person(claims: Mapping[str, Any], nonce: str) -> Person:
    """Return whom the claims name. Raises AnswerInvalid, also if they answer another sign-in."""
    if not constant_time_compare(str(claims["nonce"]), nonce):
        raise AnswerInvalid("the nonce is that of another sign-in")
    username = _claim(claims, settings.IPAM_OIDC_USERNAME_CLAIM)
    if not isinstance(username, str):
        raise AnswerInvalid(f"the claim {settings.IPAM_OIDC_USERNAME_CLAIM} is missing")
    email = _claim(claims, settings.IPAM_OIDC_EMAIL_CLAIM)
    return Person(
        source=DirectorySource.OIDC,
        subject=f"{settings.IPAM_OIDC_ISSUER.rstrip('/')} {claims['sub']}",
        username=username,
        email=email if isinstance(email, str) else "",
        groups=_groups(claims),
    )


def _groups(claims: Mapping[str, Any]) -> list[str]:
    name = settings.IPAM_OIDC_GROUPS_CLAIM
    groups = _claim(claims, name)
    # How Entra ID says that it left groups out, by the length of its answer. Its application roles are never left out.
    has_overage = (name == "groups" and claims.get("hasgroups")) or name in (
        claims.get("_claim_names") or ()
    )
    if has_overage:
        raise AnswerInvalid(
            "the person has more groups than the provider sends: let it send assigned groups only"
        )
    if groups is None:
        log.info("sign-on: the provider sent no claim %s", name)
    if isinstance(groups, str):
        groups = [groups] if groups else []
    if not isinstance(groups, list | None):
        raise AnswerInvalid(f"the claim {name} is no list")
    return [group for group in groups or () if isinstance(group, str)]
