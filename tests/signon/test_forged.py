"""ID tokens that no provider may send, from an issuer that sends them all the same."""

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

from tests.signon.issuer import Issuer, Key, begin, come_back
from tests.signon.provider_process import SECRET


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
