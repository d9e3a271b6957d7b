"""Validating webhooks: by URL and CA, on every operation, with denials and warnings."""

import base64
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kube.api import POOLS, Api, Cluster, pool
from tests.kube.certificates import Authority

_NAME = "pools.test.example.org"
_KIND = "validatingwebhookconfigurations"


class Webhook:
    """Keeps the reviews that it was sent; `decide` gives a response."""

    def __init__(self) -> None:
        authority = Authority()
        self.ca = authority.pem
        self.reviews: list[dict[str, Any]] = []
        self.decide: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {"allowed": True}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = review["request"]
                outer.reviews.append(request)
                response = {"uid": request["uid"], **outer.decide(request)}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(review | {"response": response}).encode())

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.server().load_into(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/validate"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def configuration(self, policy: str = "Fail") -> dict[str, Any]:
        rule = {
            "apiGroups": ["cilium.io"],
            "apiVersions": ["v2"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["ciliumpodippools"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "test"},
            "webhooks": [
                {
                    "name": _NAME,
                    "clientConfig": {
                        "url": self.url,
                        "caBundle": base64.b64encode(self.ca.encode()).decode(),
                    },
                    "rules": [rule],
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": policy,
                    "timeoutSeconds": 5,
                }
            ],
        }


@pytest.fixture
def webhook(cluster: Cluster, api: Api) -> Iterator[Webhook]:
    started = Webhook()
    cluster.put(started.configuration())
    _until(lambda: _asked(api, started))
    started.reviews.clear()
    yield started
    cluster.remove(_KIND, "test")
    started.decide = lambda _: {"allowed": True}
    _until(lambda: not _asked(api, started))
    started.close()


def _until(condition: Callable[[], bool]) -> None:
    """A server learns of a configuration a moment after it was written."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until


def _asked(api: Api, webhook: Webhook) -> bool:
    webhook.reviews.clear()
    api.call("POST", POOLS, pool("probe"), dryRun="All")
    return bool(webhook.reviews)


def test_it_is_asked_with_both_objects(api: Api, webhook: Webhook, name: str) -> None:
    path = f"{POOLS}/{name}"
    api.apply(POOLS, pool(name), "us")
    api.apply(POOLS, pool(name, mask=25), "us")
    api.call("DELETE", path)
    create, update, delete = webhook.reviews
    assert [review["operation"] for review in webhook.reviews] == ["CREATE", "UPDATE", "DELETE"]
    assert create["oldObject"] is None
    assert create["object"]["spec"]["allowFirstIP"] is False
    assert update["oldObject"]["spec"]["ipv4"]["maskSize"] == 24
    assert update["object"]["spec"]["ipv4"]["maskSize"] == 25
    assert (delete["object"], delete["name"]) == (None, name)
    assert delete["oldObject"]["spec"]["ipv4"]["maskSize"] == 25
    assert create["kind"] == {"group": "cilium.io", "version": "v2", "kind": "CiliumPodIPPool"}
    assert create["userInfo"]["username"] == "admin"
    assert not create["dryRun"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_denial_tells_why(api: Api, webhook: Webhook, name: str, operation: str) -> None:
    if operation != "CREATE":
        api.apply(POOLS, pool(name), "us")
    status = {"code": 409, "message": "10.0.0.0/16 is in use by node n1"}
    webhook.decide = lambda _: {"allowed": False, "status": status}
    if operation == "DELETE":
        refused = api.call("DELETE", f"{POOLS}/{name}")
    else:
        refused = api.apply(POOLS, pool(name, mask=25), "us")
    assert refused.status == 409
    assert refused.json["message"] == (
        f'admission webhook "{_NAME}" denied the request: 10.0.0.0/16 is in use by node n1'
    )
    assert api.get(f"{POOLS}/{name}").status == (404 if operation == "CREATE" else 200)


def test_a_wrong_uid_is_a_failure(api: Api, webhook: Webhook, name: str) -> None:
    webhook.decide = lambda _: {"uid": "other", "allowed": True}
    refused = api.apply(POOLS, pool(name), "us")
    assert (refused.status, refused.reason) == (500, "InternalError")
    assert "failed calling webhook" in refused.json["message"]


def test_when_it_is_down_the_policy_decides(
    api: Api, cluster: Cluster, webhook: Webhook, name: str
) -> None:
    down = webhook.configuration()
    down["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:1/validate"
    cluster.put(down)
    _until(lambda: api.apply(POOLS, pool(name), "us", dryRun="All").status == 500)
    down["webhooks"][0]["failurePolicy"] = "Ignore"
    cluster.put(down)
    _until(lambda: api.apply(POOLS, pool(name), "us", dryRun="All").status == 201)
