"""Claims of a provider: what they grant, and forged ones."""

import base64
import hmac
import json
import logging
import urllib.parse
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from tests.signon.issuer import Issuer, Key, begin, come_back
from tests.signon.provider_process import SECRET

METADATA = "/.well-known/openid-configuration"


def sign_in(client: Client, issuer: Issuer, **claims: Any) -> int:
    """Return the status of a sign-in with these claims; None leaves one out."""
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun, **claims)))
    return int(come_back(client, begun).status_code)


def roles() -> set[str]:
    return set(User.objects.get(username="ada").groups.values_list("name", flat=True))


@pytest.mark.sample(4)
@pytest.mark.parametrize("email", ["a" * 300 + "@example.org", "a\x00b@example.org", 7, None])
def test_an_email_that_no_account_can_have_is_left_out(
    client: Client, issuer: Issuer, email: Any
) -> None:
    assert sign_in(client, issuer, email="ada@example.org") == 302
    assert sign_in(client, issuer, email=email) == 302
    assert User.objects.get().email == ""


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "claims",
    [
        {"groups": None, "hasgroups": True},
        {"groups": None, "_claim_names": {"groups": "src1"}},
        {"groups": ["auditors"], "hasgroups": "true"},
        {"groups": {"net-admins": False}},
        {"groups": True},
    ],
    ids=str,
)
def test_groups_that_are_not_known_take_nothing_away(
    client: Client, issuer: Issuer, claims: dict[str, Any]
) -> None:
    assert sign_in(client, issuer, groups=["net-admins"]) == 302
    AuthToken.objects.create(User.objects.get())
    assert sign_in(Client(), issuer, **claims) == 403
    assert roles() == {"administrator"}
    assert AuthToken.objects.exists()


@pytest.mark.parametrize("value", [[], ""], ids=str)
def test_no_groups_take_everything_away(client: Client, issuer: Issuer, value: Any) -> None:
    assert sign_in(client, issuer, groups="net-admins") == 302  # a single one as a text
    AuthToken.objects.create(User.objects.get())
    assert sign_in(Client(), issuer, groups=value) == 403
    assert roles() == set()
    assert not AuthToken.objects.exists()


def test_groups_that_are_null_are_none(client: Client, issuer: Issuer) -> None:
    assert sign_in(client, issuer) == 302
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun) | {"groups": None}))
    assert come_back(client, begun).status_code == 403
    assert roles() == set()


def test_an_email_that_only_userinfo_has(client: Client, issuer: Issuer) -> None:
    issuer.documents[METADATA]["userinfo_endpoint"] = f"{issuer.url}/me"
    issuer.documents["/me"] = {"sub": "u1", "email": "ada@example.org"}
    for _ in range(2):
        assert sign_in(client, issuer) == 302
        assert User.objects.get().email == "ada@example.org"


def test_groups_below_another_claim(client: Client, issuer: Issuer, settings: Any) -> None:
    settings.IPAM_OIDC_GROUPS_CLAIM = "realm_access.roles"
    assert sign_in(client, issuer, realm_access={"roles": ["net-admins"]}) == 302
    assert roles() == {"administrator"}
    settings.IPAM_OIDC_GROUPS_CLAIM = "https://example.org/groups"
    assert sign_in(client, issuer, **{"https://example.org/groups": ["auditors"]}) == 302
    assert roles() == {"viewer"}


def test_application_roles_beside_groups_that_were_left_out(
    client: Client, issuer: Issuer, settings: Any
) -> None:
    settings.IPAM_OIDC_GROUPS_CLAIM = "roles"
    assert sign_in(client, issuer, roles=["net-admins"], hasgroups=True) == 302
    assert roles() == {"administrator"}


@pytest.mark.exhaustive
def test_a_name_in_other_letters_is_the_same_name(client: Client, issuer: Issuer) -> None:
    User.objects.create_superuser("ada", password="of this site")
    assert sign_in(client, issuer, preferred_username="\uff41\uff44\uff41") == 403
    assert User.objects.get().username == "ada"


def test_an_answer_of_another_issuer(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun)))
    assert come_back(client, begun, iss="https://another.example").status_code == 403
    assert come_back(client, begun, iss=issuer.url).status_code == 302


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "future", "kid": "x"},
        {"kty": "OKP", "crv": "X448", "kid": "x", "x": "AAAA"},
        {"kty": "oct", "kid": "x", "k": "AAAA"},
    ],
    ids=str,
)
def test_a_key_of_another_kind_beside_those_for_signatures(
    client: Client, issuer: Issuer, key: dict[str, str]
) -> None:
    issuer.documents["/jwks"]["keys"].append(key)
    assert sign_in(client, issuer) == 302


@pytest.mark.parametrize("seconds", [-50, 50])
def test_clocks_may_differ_a_little(client: Client, issuer: Issuer, seconds: int) -> None:
    now = timedelta(seconds=seconds)
    assert sign_in(client, issuer, iat=now, nbf=now, exp=now + timedelta(seconds=5)) == 302


@pytest.mark.sample(5)
@pytest.mark.parametrize("document", [["x"], "x", None, {"issuer": None}, {"issuer": 7}], ids=str)
def test_a_description_that_cannot_be_read(client: Client, issuer: Issuer, document: Any) -> None:
    right = issuer.documents[METADATA]
    issuer.documents[METADATA] = document
    assert client.get("/sign-on/", secure=True).status_code in {403, 503}
    issuer.documents[METADATA] = right
    assert sign_in(client, issuer) == 302


def test_userinfo_is_read_over_https_only(client: Client, issuer: Issuer) -> None:
    issuer.documents[METADATA]["userinfo_endpoint"] = issuer.url.replace("https:", "http:")
    assert client.get("/sign-on/", secure=True).status_code == 403


def test_a_logout_address_with_a_query(client: Client, issuer: Issuer) -> None:
    issuer.documents[METADATA]["end_session_endpoint"] = f"{issuer.url}/end?policy=staff"
    assert sign_in(client, issuer) == 302
    page = client.post(reverse("admin:logout"), secure=True)
    assert page.context["sign_on_logout_url"].startswith(
        f"{issuer.url}/end?policy=staff&id_token_hint="
    )


@pytest.mark.parametrize(
    ("methods", "is_basic"),
    [
        (None, True),
        (["client_secret_basic", "client_secret_post"], True),
        (["client_secret_post"], False),
    ],
)
def test_the_client_names_itself_as_the_provider_wants_it(
    client: Client, issuer: Issuer, methods: list[str] | None, is_basic: bool
) -> None:
    """By HTTP Basic, where the provider does not say (OpenID Connect Discovery, 3)."""
    if methods is not None:
        issuer.documents[METADATA]["token_endpoint_auth_methods_supported"] = methods
    assert sign_in(client, issuer) == 302
    assert [text.startswith("Basic ") for text in issuer.authorizations] == [is_basic]


# --- ID tokens that no provider may send, from an issuer that sends them all the same -------------
def _encode(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def _encode_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def refused(client: Client, begun: str) -> bool:
    status = come_back(client, begun).status_code
    return bool(
        status == 403 and not User.objects.exists() and "_auth_user_id" not in client.session
    )


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_right_token_is_accepted(client: Client, issuer: Issuer, algorithm: str) -> None:
    begun = begin(client)
    assert "code_challenge_method=S256" in begun
    issuer.issue(issuer.sign(issuer.claims(begun), algorithm))
    assert come_back(client, begun).status_code == 302
    assert User.objects.get().username == "ada"


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    "claims",
    [
        {"exp": timedelta(minutes=-10)},
        {"exp": None},
        {"exp": "tomorrow"},
        {"iat": timedelta(hours=1)},
        {"nbf": timedelta(hours=1)},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"iss": "https://localhost:1"},
        {"iss": None},
        {"aud": "another client"},
        {"aud": "another client", "azp": "cadastre-RS256"},
        {"aud": None},
        {"aud": ["another client", "cadastre-RS256"], "azp": "another client"},
        {"aud": ["another client", "cadastre-RS256"]},
        {"sub": None},
        {"sub": 7},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "a\x00b"},
        {"preferred_username": None},
        {"preferred_username": ["ada"]},
        {"groups": 7},
        {"groups": None, "_claim_names": {"groups": "src1"}},
    ],
    ids=str,
)
def test_claims_that_are_not_right(client: Client, issuer: Issuer, claims: dict[str, Any]) -> None:
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun, **claims)))
    assert refused(client, begun)


def test_a_signature_by_another_key(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    for kid in ("rsa", "another"):
        key = Key(kid)
        issuer.issue(issuer.sign(issuer.claims(begun), key=key))
        assert refused(client, begun)
        begun = begin(client)


def test_a_token_that_was_changed(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    head, _, signature = issuer.sign(issuer.claims(begun)).split(".")
    claims = json.dumps(issuer.claims(begun, groups=["net-admins"])).encode()
    issuer.issue(f"{head}.{_encode(claims)}.{signature}")
    assert refused(client, begun)


def test_a_token_without_a_signature(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    parts = ({"alg": "none"}, issuer.claims(begun))
    issuer.issue(".".join([*(_encode(json.dumps(part).encode()) for part in parts), ""]))
    assert refused(client, begun)


@pytest.mark.parametrize("secret", ["public key", "client secret"])
def test_a_shared_secret_is_no_key_of_the_provider(
    client: Client, issuer: Issuer, secret: str
) -> None:
    begun = begin(client)
    public = (
        issuer.keys["RS256"]
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    octets = public if secret == "public key" else SECRET.encode()
    parts = ({"alg": "HS256", "kid": "rsa"}, issuer.claims(begun))
    signed = ".".join(_encode(json.dumps(part).encode()) for part in parts)
    signature = hmac.digest(octets, signed.encode(), "sha256")
    issuer.issue(f"{signed}.{_encode(signature)}")
    assert refused(client, begun)


@pytest.mark.parametrize("algorithm", ["HS256", "RS256"])
def test_a_shared_secret_among_the_published_keys_signs_nothing(
    client: Client, issuer: Issuer, algorithm: str
) -> None:
    secret = b"published by mistake, 32 octets."
    issuer.documents["/jwks"]["keys"].append({"kty": "oct", "kid": "x", "k": _encode(secret)})
    begun = begin(client)
    parts = ({"alg": algorithm, "kid": "x"}, issuer.claims(begun))
    signed = ".".join(_encode(json.dumps(part).encode()) for part in parts)
    issuer.issue(f"{signed}.{_encode(hmac.digest(secret, signed.encode(), 'sha256'))}")
    assert refused(client, begun)


def test_no_id_token(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    issuer.issue(None)
    assert refused(client, begun)
    begun = begin(client)
    issuer.issue("no token")
    assert refused(client, begun)


@pytest.mark.parametrize("state", ["", "x", "another"])
def test_a_state_that_nobody_began(client: Client, issuer: Issuer, state: str) -> None:
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun)))
    assert come_back(client, begun, state=state).status_code == 400
    assert not User.objects.exists()


def test_keys_that_the_provider_changed(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun)))
    assert come_back(client, begun).status_code == 302
    key = Key("next")
    issuer.publish(key)
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun), key=key))
    assert come_back(client, begun).status_code == 302


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://another.example"},
        {"token_endpoint": "http://localhost:1/token"},
        {"jwks_uri": ""},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_a_provider_that_describes_itself_wrongly(
    client: Client, issuer: Issuer, metadata: dict[str, Any]
) -> None:
    document = issuer.documents["/.well-known/openid-configuration"]
    right = dict(document)
    document.update(metadata)
    assert client.get("/sign-on/", secure=True).status_code == 403
    document.update(right)
    assert client.get("/sign-on/", secure=True).status_code == 302  # not remembered


def test_a_provider_that_breaks_on_the_way(client: Client, issuer: Issuer) -> None:
    begun = begin(client)
    issuer.is_broken = True
    assert come_back(client, begun).status_code == 503


@pytest.mark.parametrize(
    "write", [str, _encode_text, urllib.parse.quote], ids=["plain", "base64", "percent"]
)
def test_a_client_secret_that_the_provider_repeats_is_logged_nowhere(
    client: Client, issuer: Issuer, write: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    begun = begin(client)
    issuer.documents["/token"] = {"error": "bad client", "repeated": write(SECRET)}
    with caplog.at_level(logging.INFO):
        response = come_back(client, begun)
    assert response.status_code == 403
    assert "bad client" in caplog.text
    assert "[redacted]" in caplog.text
    shown = f"{caplog.text} {response.content.decode()}"
    assert SECRET not in shown
    assert write(SECRET) not in shown


@pytest.mark.parametrize("subject", ["u1", "u2"])
def test_userinfo_must_speak_of_the_same_person(
    client: Client, issuer: Issuer, subject: str
) -> None:
    issuer.documents["/.well-known/openid-configuration"]["userinfo_endpoint"] = f"{issuer.url}/me"
    issuer.documents["/me"] = {"sub": subject, "groups": ["net-admins"]}
    begun = begin(client)
    issuer.issue(issuer.sign(issuer.claims(begun, groups=None)))
    assert come_back(client, begun).status_code == (302 if subject == "u1" else 403)
    assert User.objects.exists() == (subject == "u1")
