"""Rules `credentials-are-usable` and `kubeconfig-runs-nothing`; key material is never shown."""

import dataclasses
import datetime
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from pools.clusters.client import kubeconfig
from pools.core import errors
from pools.platform.outbound import credentials
from pools.platform.outbound.credentials import Access
from tests.clusters.conftest import NOW, encoded
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


CANARY = "canary.token"


def test_a_token_is_taken(config: Callable[..., str], authority: certificates.Authority) -> None:
    reading = kubeconfig.read(config(), now=NOW)
    assert reading.context == "prod"
    assert reading.access == Access("https://10.1.2.3:6443", authority.pem, CANARY)
    assert reading.warnings == ()


def test_a_client_certificate_is_taken(
    config: Callable[..., str], authority: certificates.Authority
) -> None:
    pair = authority.client("cadastre")
    user = {
        "client-certificate-data": encoded(pair.certificate),
        "client-key-data": encoded(pair.key),
    }
    access = kubeconfig.read(config(user=user), now=NOW).access
    assert (access.certificate, access.key, access.token) == (pair.certificate, pair.key, "")
    assert Access.load(access.dump()) == access


@pytest.mark.parametrize(
    ("cluster", "user", "code", "field"),
    [
        ({}, {"exec": {"command": "touch"}}, "exec_not_allowed", "users.admin.exec"),
        ({}, {"token": CANARY, "exec": {"command": "x"}}, "exec_not_allowed", "users.admin.exec"),
        ({}, {"auth-provider": {"name": "oidc"}}, "auth_provider_not_allowed", None),
        ({}, {"tokenFile": "/etc/shadow"}, "file_reference", "users.admin.tokenFile"),
        ({}, {"client-certificate": "a.crt"}, "file_reference", None),
        ({}, {"client-key": "a.key"}, "file_reference", None),
        ({"certificate-authority": "ca.crt"}, None, "file_reference", None),
        ({"proxy-url": "socks5://10.0.0.1:1080"}, None, "proxy_not_allowed", None),
        ({"insecure-skip-tls-verify": True}, None, "tls_verification_required", None),
        ({"insecure-skip-tls-verify": "true"}, None, "tls_verification_required", None),
        ({}, {"username": "a", "password": CANARY}, "password_not_allowed", None),
        ({}, {"token": CANARY, "as": "root"}, "impersonation_not_allowed", "users.admin.as"),
        ({}, {"token": CANARY, "as-groups": ["system:masters"]}, "impersonation_not_allowed", None),
        ({}, {}, "no_credentials", "users.admin"),
        ({}, {"token": f"{CANARY}\nX-Evil: 1"}, "bad_token", "users.admin.token"),
        ({}, {"token": 123}, "text_expected", "users.admin.token"),
        ({"server": "http://10.1.2.3:6443"}, None, "url_not_allowed", "clusters.east.server"),
        ({"server": ""}, None, "url_not_allowed", None),
        ({"tls-server-name": "a b"}, None, "bad_server_name", "clusters.east.tls-server-name"),
        ({"certificate-authority-data": "%%%"}, None, "bad_base64", None),
        ({"certificate-authority-data": encoded("no PEM")}, None, "bad_pem", None),
        ({}, {"client-key-data": "%"}, "bad_base64", "users.admin.client-key-data"),
    ],
)
def test_what_is_refused(
    config: Callable[..., str],
    cluster: dict[str, Any],
    user: dict[str, Any] | None,
    code: str,
    field: str | None,
) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        kubeconfig.read(config(cluster, user), now=NOW)
    assert refusal.value.code == code
    assert field in {None, refusal.value.problems[0].field}
    assert CANARY not in f"{refusal.value} {refusal.value.problems}"


def test_a_program_is_not_run(config: Callable[..., str], tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "marker"
    user = {"exec": {"apiVersion": "v1", "command": "touch", "args": [str(marker)]}}
    with pytest.raises(errors.InvalidInput):
        kubeconfig.read(config(user=user), now=NOW)
    assert not marker.exists()


def test_another_users_program_does_not_matter(config: Callable[..., str]) -> None:
    users = [
        {"name": "other", "user": {"exec": {"command": "x"}}},
        {"name": "admin", "user": {"token": CANARY}},
    ]
    assert kubeconfig.read(config(users=users), now=NOW).access.token == CANARY


@pytest.mark.parametrize(
    ("top", "context", "code", "message"),
    [
        ({}, "nope", "context_missing", "prod"),
        ({"current-context": ""}, "", "context_missing", "prod"),
        ({"contexts": []}, "", "context_missing", "none"),
        ({"clusters": []}, "", "cluster_missing", ""),
        ({"users": None}, "", "user_missing", ""),
        ({"contexts": "x"}, "", "context_missing", ""),
    ],
)
def test_what_is_missing_is_named(
    config: Callable[..., str], top: dict[str, Any], context: str, code: str, message: str
) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        kubeconfig.read(config(**top), context=context, now=NOW)
    assert refusal.value.code == code
    assert message in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[]", "a: &x 1", "a: !!python/name:os.system x", "\0", "{"])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidInput):
        kubeconfig.read(text, now=NOW)


def test_neither_repr_nor_a_dump_of_the_reading_shows_a_secret(
    config: Callable[..., str], authority: certificates.Authority
) -> None:
    pair = authority.client("x")
    user = {
        "token": CANARY,
        "client-certificate-data": encoded(pair.certificate),
        "client-key-data": encoded(pair.key),
    }
    reading = kubeconfig.read(config(user=user), now=NOW)
    shown = f"{reading!r} {reading} {reading.access!r}"
    assert CANARY not in shown
    assert "PRIVATE KEY" not in shown


def test_in_a_pod_the_service_account_is_used(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----")
    (tmp_path / "token").write_text("first\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = kubeconfig.service_account_access(environ, folder=tmp_path)
    assert (access.server, access.bearer()) == ("https://[fd00::1]:443", "first")
    (tmp_path / "token").write_text("second")
    assert access.bearer() == "second"


def test_outside_of_a_pod_that_is_said(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        kubeconfig.service_account_access({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, folder=tmp_path)
    assert refusal.value.code == "not_in_cluster"


@pytest.mark.parametrize(
    ("days", "warning"),
    [(0, ""), (360, "expires on"), (400, "expired on"), (-1, "is not valid before")],
)
def test_the_end_of_a_certificate_is_a_warning(
    config: Callable[..., str], days: int, warning: str
) -> None:
    warnings = kubeconfig.read(config(), now=NOW + datetime.timedelta(days=days)).warnings
    assert bool(warnings) == bool(warning)
    assert all(warning in item for item in warnings)
