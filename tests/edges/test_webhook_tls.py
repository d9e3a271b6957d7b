"""`up` with a certificate: HTTPS, secure cookies, client certificates, and the webhook over TLS."""

import contextlib
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pools.platform.outbound import faults
from tests import running_site
from tests.edges import webhooks
from tests.edges.webhooks import manifest, review
from tests.kube import gateways
from tests.kube.certificates import Authority, Pair
from tests.kube.fake import FakeCluster

_CLIENT = "kube-apiserver-east"


class Site:
    """A running `up` with TLS, a cluster `east` with a webhook key, and a cluster `west`."""

    def __init__(self, folder: pathlib.Path, data: pathlib.Path) -> None:
        self.folder = folder
        self.authority = Authority()
        certificate, key = self.authority.server().files(folder, "server")
        (folder / "ca.pem").write_text(self.authority.pem)
        self.up = running_site.Site(
            data,
            "--no-demo",
            f"--tls-cert={certificate}",
            f"--tls-key={key}",
            f"--tls-client-ca={folder / 'ca.pem'}",
            env={"IPAM_WEBHOOK_CLIENTS": f"east={_CLIENT}", "ACCESS_LOG": "1"},
        ).wait_until_ready()
        for name in ("east", "west"):
            self.up.command("cluster", "add", name)
        self.key = self.up.command("webhook", "east", "--new-key").strip()

    def request(
        self, path: str, body: Any = None, *, ca: str = "", pair: Pair | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        context = ssl.create_default_context(cadata=ca or self.authority.pem)
        if pair:
            pair.load_into(context)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.up.port, timeout=20, context=context
        )
        with contextlib.closing(connection):
            method = "POST" if body is not None else "GET"
            connection.request(
                method,
                path,
                json.dumps(body) if body else None,
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()

    def asks(self, cluster: str, key: str = "", pair: Pair | None = None) -> int:
        return self.request(webhooks.path(cluster, key), review(manifest("green")), pair=pair)[0]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site.used() as data, tempfile.TemporaryDirectory() as folder:
        started = Site(pathlib.Path(folder), data)
        try:
            yield started
        finally:
            started.up.end()


def test_it_says_its_address(site: Site) -> None:
    assert f"https://127.0.0.1:{site.up.port}/" in site.up.output
    assert site.request("/readyz")[0] == 200


def test_cookies_are_secure_and_this_machine_is_not_pinned_to_https(site: Site) -> None:
    status, headers, _ = site.request("/admin/login/")
    assert status == 200
    assert "Secure" in headers["Set-Cookie"]
    assert "Strict-Transport-Security" not in headers


def test_the_webhook_by_key(site: Site) -> None:
    status, _, body = site.request(webhooks.path("east", site.key), review(manifest("green")))
    assert status == 200
    assert json.loads(body)["response"] == {"uid": webhooks.UID, "allowed": True}
    assert site.asks("west", site.key) == 403
    assert site.asks("east") == 403


def test_an_api_server_asks_it(site: Site) -> None:
    """By the manifest that the command prints; a new key ends the one before."""
    address = f"--url=https://127.0.0.1:{site.up.port}"
    ca = f"--ca={site.folder / 'ca.pem'}"
    only = "--only=validate-ciliumpodippools"
    printed = site.up.command("webhook", "west", "--new-key", "--print-manifest", only, address, ca)
    with FakeCluster() as cluster:
        cluster.crds("cilium.io_ciliumpodippools.v2")
        cluster.put(yaml.safe_load(printed))
        with gateways.to(cluster) as gateway:
            gateway.apply(gateways.POOLS, gateways.pool("good"), manager="test")
            with pytest.raises(faults.Rejected, match=r"spec.ipv4.cidrs.0: .*host bits"):
                gateway.apply(gateways.POOLS, gateways.pool("bad", "10.0.0.7/16"), manager="test")
            # No longer a caller that is known: failurePolicy Fail.
            site.up.command("webhook", "west", "--new-key")
            with pytest.raises(faults.ServerFault, match="failed calling webhook"):
                gateway.apply(gateways.POOLS, gateways.pool("late"), manager="test")


def test_the_webhook_by_client_certificate(site: Site) -> None:
    named = site.authority.client(_CLIENT)
    assert site.asks("east", pair=named) == 200
    assert site.asks("west", pair=named) == 403
    assert site.asks("east", pair=site.authority.client("somebody")) == 403


def test_a_certificate_of_another_authority_is_refused(site: Site) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        site.asks("east", pair=Authority().client(_CLIENT))


def test_the_key_is_in_no_log(site: Site) -> None:
    site.request(webhooks.path("east", site.key), {"no": "review"})
    logs = "".join(log.read_text() for log in (site.up.data / "logs").glob("web*.log"))
    assert re.search(r"/webhooks/v1/east/\[redacted\]/validate-ciliumpodippools", logs)
    assert site.key not in logs + site.up.output


def test_a_certificate_that_was_replaced_is_used_without_a_restart(site: Site) -> None:
    renewed = Authority()
    site.folder.joinpath("server.crt").write_text("half of a")
    assert site.request("/healthz")[0] == 200
    renewed.server().files(site.folder, "server")
    assert site.request("/healthz", ca=renewed.pem)[0] == 200
    site.authority.server().files(site.folder, "server")


@pytest.mark.parametrize(
    "options", [["--tls-cert=x"], ["--tls-cert=/nowhere", "--tls-key=/nowhere"]]
)
def test_what_cannot_be_served_is_told_at_once(options: list[str]) -> None:
    with running_site.folder() as data:
        command = [sys.executable, "manage.py", "up", "--port=1", f"--data={data}", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "TLS" in done.stderr
    assert "Traceback" not in done.stderr
