"""Rules `server-url-is-strict` and `kubeconfig-runs-nothing` over REST: nothing is sent or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pools.models import Connection
from tests.edges import api as apis
from tests.kube import certificates, kubeconfigs

pytestmark = pytest.mark.django_db
CA = certificates.Authority().pem
PLACE = "clusters/prod/connection/"
URLS = (
    "http://10.1.2.3:6443", "file:///etc/passwd", "https://169.254.169.254", "https://127.0.0.1:6443",
    "https://localhost:6443", "https://2130706433:6443", "https://0x7f.1:6443",
    "https://[::ffff:169.254.169.254]", "https://[::1]:6443", "https://user:pw@10.1.2.3:6443",
    "https://10.1.2.3:22", "https://10.1.2.3:6379", "https://0.0.0.0:6443", "https://10.1.2.3/a?b",
)  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("door", ["connect", "test"])
def test_an_address_that_must_not_be_reached(api: apis.Api, url: str, door: str) -> None:
    body = {"kubeconfig": kubeconfigs.text(url, CA, token="t")}
    if door == "connect":
        apis.refused(api("PUT", PLACE, body), 400, "url_not_allowed")
        assert not Connection.objects.exists()
    else:
        answer = api("POST", f"{PLACE}test/", body)
        assert answer.json()["code"] == "url_not_allowed", answer.content


def _config(**user: Any) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(
        kubeconfigs.text("https://10.1.2.3:6443", CA, token="canary-token")
    )
    config["users"][0]["user"].update(user)
    return config


def test_what_would_act_on_our_machine(api: apis.Api, tmp_path: Path) -> None:
    marker = tmp_path / "a-marker-file"
    run = {
        "command": "touch",
        "args": [str(marker)],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    for user, code in (
        ({"exec": run}, "exec_not_allowed"),
        ({"auth-provider": {"name": "gcp"}}, "auth_provider_not_allowed"),
        ({"tokenFile": str(marker)}, "file_reference"),
        ({"client-key": "/etc/shadow"}, "file_reference"),
        ({"password": "canary-token"}, "password_not_allowed"),
        ({"as": "admin"}, "impersonation_not_allowed"),
    ):
        answer = api("PUT", PLACE, {"kubeconfig": yaml.safe_dump(_config(**user))})
        apis.refused(answer, 400, code)
        assert "canary-token" not in answer.content.decode()
    for key, value, code in (
        ("insecure-skip-tls-verify", True, "tls_verification_required"),
        ("proxy-url", "http://10.0.0.1:3128", "proxy_not_allowed"),
        ("certificate-authority", "/etc/ssl/ca.pem", "file_reference"),
    ):
        config = _config()
        config["clusters"][0]["cluster"][key] = value
        apis.refused(api("PUT", PLACE, {"kubeconfig": yaml.safe_dump(config)}), 400, code)
    assert not marker.exists()
    assert not Connection.objects.exists()
