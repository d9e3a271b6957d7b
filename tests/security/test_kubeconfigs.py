"""Kubeconfigs and the credentials in them."""

import pathlib
import socket
from typing import Any

import psycopg
import pytest
import yaml

from ipam_site import data_folder
from tests import eventually, servers
from tests.kube import certificates, kubeconfigs
from tests.security.target import RunningTarget, Target

CA = certificates.Authority().pem
PLACE = "clusters/prod/connection/"
URLS = (
    "http://10.1.2.3:6443", "file:///etc/passwd", "https://169.254.169.254", "https://127.0.0.1:{0}",
    "https://localhost:{0}", "https://2130706433:{0}", "https://0x7f.1:{0}", "https://0177.0.0.1:{0}",
    "https://127.1:{0}", "https://[::ffff:127.0.0.1]:{0}", "https://[::1]:{0}", "https://0.0.0.0:{0}",
    "https://[::ffff:169.254.169.254]", "https://[fe80::1]:6443", "https://[fd00:ec2::254]:6443",
    "https://user:pw@10.1.2.3:6443", "https://10.1.2.3:22", "https://10.1.2.3:6379",
    "https://10.1.2.3:5432", "https://10.1.2.3/a?b", "https://224.0.0.1:6443",
    "https://metadata.google.internal:6443",
)  # fmt: skip


def _config(part: str = "users", **changes: Any) -> str:
    config = yaml.safe_load(kubeconfigs.text("https://10.1.2.3:6443", CA, token="canary-token"))
    config[part][0][part.removesuffix("s")] |= changes
    return str(yaml.safe_dump(config))


def test_no_program_is_run_and_no_file_is_read(target: Target, tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "a-marker-file"
    version = "client.authentication.k8s.io/v1"
    run = {"command": "touch", "args": [str(marker)], "apiVersion": version}
    provider = {"name": "gcp", "config": {"cmd-path": f"touch {marker}"}}
    for config, code in (
        (_config(exec=run), "exec_not_allowed"),
        (_config(**{"auth-provider": provider}), "auth_provider_not_allowed"),
        (_config(tokenFile="/etc/passwd"), "file_reference"),
        (_config(**{"client-key": "/etc/shadow"}), "file_reference"),
        (_config(password="canary-token"), "password_not_allowed"),
        (_config(**{"as": "admin"}), "impersonation_not_allowed"),
        (_config("clusters", **{"insecure-skip-tls-verify": True}), "tls_verification_required"),
        (_config("clusters", **{"proxy-url": "http://10.0.0.1:3128"}), "proxy_not_allowed"),
        (_config("clusters", **{"certificate-authority": "/etc/ssl/ca.pem"}), "file_reference"),
    ):
        for method, path in (("PUT", PLACE), ("POST", f"{PLACE}test/")):
            answer = target.rest(method, path, {"kubeconfig": config})
            assert answer.json()["code"] == code, (method, config)
            assert answer.status == 400 or method == "POST"
            assert "canary-token" not in answer.text
            assert "root:" not in answer.text
    assert not marker.exists()
    assert target.rest("GET", PLACE).status == 404


def test_no_address_of_this_machine_is_reached(target: Target, canary: socket.socket) -> None:
    for url in URLS:
        text = kubeconfigs.text(url.format(canary.getsockname()[1]), CA, token="t")
        refused = target.rest("PUT", PLACE, {"kubeconfig": text})
        assert refused.status in {400, 502}, (url, refused.status, refused.text)
        tested = target.rest("POST", f"{PLACE}test/", {"kubeconfig": text})
        assert tested.status == 400 or tested.json()["code"], url
    assert not servers.heard(canary)


@pytest.mark.exhaustive
def test_no_message_goes_to_this_machine(running: RunningTarget, canary: socket.socket) -> None:
    """The address is judged when it is dialled: a name may lead elsewhere by then."""
    port = canary.getsockname()[1]
    assert running.rest("POST", "webhook-targets/", {"name": "n", "url": "http://x/"}).status == 400
    for name, url in (
        ("a", f"https://127.0.0.1:{port}/"),
        ("b", f"https://[::ffff:7f00:1]:{port}/"),
    ):
        created = running.rest("POST", "webhook-targets/", {"name": f"probe-{name}", "url": url})
        if created.status == 400:
            continue
        place = f"webhook-targets/{created.json()['id']}/"
        assert running.rest("POST", f"{place}test/").status == 202
        eventually.until(
            lambda path=place: running.rest("GET", f"{path}deliveries/").json()["results"][0][
                "last_error"
            ]
        )
    assert not servers.heard(canary)


# --- Rule `credentials-are-sealed`, on a running site ---------------------------------------------
CANARY = "canary-credential-5d1f0a77"


@pytest.mark.exhaustive
def test_no_door_gives_it_back_and_a_copied_row_opens_nothing(running: RunningTarget) -> None:
    authority = certificates.Authority().pem
    answers = []
    for name, token in (("sealed-a", CANARY), ("sealed-b", "another-credential")):
        running.rest("POST", "clusters/", {"name": name})
        config = kubeconfigs.text("https://10.255.255.1:6443", authority, token=token)
        place = f"clusters/{name}/connection/"
        created = running.rest("PUT", place, {"kubeconfig": config, "offline": True})
        assert created.status == 201, created.text
        answers += [created, running.rest("GET", place), running.rest("GET", f"clusters/{name}/")]
    answers += [running.rest("GET", "events/?limit=100"), running.rest("GET", "clusters/")]
    assert not [answer for answer in answers if CANARY in answer.text]
    assert CANARY not in running.dump()
    assert CANARY not in running.logs()
    with psycopg.connect(data_folder.connections(running.up.data)["database_url"]) as database:
        columns = database.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'pools_connection' AND column_name LIKE '%sealed%'"
        ).fetchall()
        assert columns
        for (column,) in columns:
            database.execute(
                f"UPDATE pools_connection SET {column} = (SELECT {column} FROM pools_connection"  # type: ignore[arg-type]
                "  WHERE cluster_id = (SELECT id FROM pools_cluster WHERE name = 'sealed-a'))"
                " WHERE cluster_id = (SELECT id FROM pools_cluster WHERE name = 'sealed-b')"
            )
    answer = running.rest("POST", "clusters/sealed-b/connection/test/", {})
    assert "stored credential is not that of" in answer.text, answer.text
