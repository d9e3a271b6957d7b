"""Rule `credentials-are-usable`, and key material is never shown."""

from __future__ import annotations

import dataclasses

import pytest
from cryptography.hazmat.primitives import serialization

from pools.core import errors
from pools.platform.outbound import credentials
from pools.platform.outbound.credentials import Access
from tests.clusters.conftest import NOW
from tests.kube import certificates


def _locked(key: str) -> str:
    private = serialization.load_pem_private_key(key.encode(), None)
    return private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pass"),
    ).decode()


def _refusal(access: Access) -> errors.FieldProblem:
    with pytest.raises(errors.InvalidInput) as refusal:
        credentials.check(access, now=NOW)
    assert "PRIVATE KEY" not in f"{refusal.value} {refusal.value.problems}"
    return refusal.value.problems[0]


@pytest.fixture
def access(authority: certificates.Authority) -> Access:
    pair = authority.client("cadastre")
    return Access("https://a:6443", authority.pem, certificate=pair.certificate, key=pair.key)


def test_a_matching_pair_is_fine(access: Access) -> None:
    assert credentials.check(access, now=NOW) == ()


def test_no_authority_is_a_warning(access: Access) -> None:
    warnings = credentials.check(dataclasses.replace(access, ca=""), now=NOW)
    assert "system's own" in warnings[0]


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"key": ""}, "key", "client_key_missing"),
        ({"certificate": ""}, "certificate", "client_certificate_missing"),
        ({"key": "", "certificate": ""}, "", "no_credentials"),
        ({"key": "-----BEGIN PRIVATE KEY-----\nAAAA\n"}, "key", "bad_pem"),
        ({"certificate": "-----BEGIN CERTIFICATE-----\nA"}, "certificate", "bad_pem"),
        ({"ca": "nothing"}, "ca", "bad_pem"),
        ({"tls_server_name": "-x"}, "tls_server_name", "bad_server_name"),
        ({"token": "a b"}, "token", "bad_token"),
        ({"token": "ä"}, "token", "bad_token"),
    ],
)
def test_what_cannot_work_is_refused(
    access: Access, change: dict[str, str], field: str, code: str
) -> None:
    problem = _refusal(dataclasses.replace(access, **change))
    assert (problem.field, problem.code) == (field, code)


def test_another_key_is_refused(access: Access, authority: certificates.Authority) -> None:
    other = dataclasses.replace(access, key=authority.client("other").key)
    assert _refusal(other).code == "key_mismatch"


def test_a_key_with_a_password_is_refused(access: Access) -> None:
    assert _refusal(dataclasses.replace(access, key=_locked(access.key))).code == "bad_pem"


def test_a_private_key_among_the_authorities_is_refused(access: Access) -> None:
    leaked = dataclasses.replace(access, ca=access.ca + access.key)
    assert _refusal(leaked).code == "private_key_in_ca"


def test_a_bundle_of_thousands_is_refused(access: Access) -> None:
    assert _refusal(dataclasses.replace(access, ca=access.ca * 1000)).code == "bad_pem"
