"""The API by plain HTTP, as the tests of this folder speak it."""

import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kube.certificates import Pair
from tests.kube.fake import FakeCluster
from tests.kube.real import RealCluster

Cluster = FakeCluster | RealCluster
Manifest = dict[str, Any]

POOLS = "/apis/cilium.io/v2/ciliumpodippools"
OLD_POOLS = "/apis/cilium.io/v2alpha1/ciliumpodippools"
CLAIMS = "/apis/k8s.cni.cncf.io/v1alpha1/namespaces/default/ipamclaims"

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def version(self) -> str:
        return str(self.json["metadata"]["resourceVersion"])

    @property
    def reason(self) -> str:
        """Of a Status."""
        return str(self.json["reason"])

    @property
    def causes(self) -> dict[str, str]:
        """Reason by field, of a Status."""
        return {cause["field"]: cause["reason"] for cause in self.json["details"]["causes"]}


class Api:
    """One connection, kept alive, of the admin unless a token is given ("" is nobody's)."""

    def __init__(
        self, cluster: Cluster, *, token: str | None = None, pair: Pair | None = None
    ) -> None:
        self._token = cluster.token if token is None else token
        context = ssl.create_default_context(cadata=cluster.ca)
        if pair is not None:
            pair.load_into(context)
        url = urllib.parse.urlsplit(cluster.url)
        self._connection = http.client.HTTPSConnection(
            url.hostname or "", url.port, context=context, timeout=30
        )

    def close(self) -> None:
        self._connection.close()

    def _send(
        self, method: str, path: str, body: Any, content_type: str, query: dict[str, Any]
    ) -> http.client.HTTPResponse:
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {"User-Agent": "tests/1", "Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        self._connection.request(method, path, data, headers)
        return self._connection.getresponse()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: Any,
    ) -> Reply:
        """An answer of any status; the query by its names (`continue_` for continue)."""
        parameters = {name.rstrip("_"): value for name, value in query.items()}
        answer = self._send(method, path, body, content_type, parameters)
        return Reply(answer.status, answer.headers, answer.read())

    def get(self, path: str, **query: Any) -> Reply:
        return self.call("GET", path, **query)

    def apply(self, path: str, manifest: Manifest, manager: str, **query: Any) -> Reply:
        """Server-side apply of a manifest to a collection, or to `/status` of its object."""
        collection, _, sub = path.partition("/status")
        url = f"{collection}/{manifest['metadata']['name']}" + ("/status" if _ else "") + sub
        return self.call("PATCH", url, manifest, content_type=APPLY, fieldManager=manager, **query)

    def watch(self, path: str, **query: Any) -> Iterator[Manifest]:
        """The events, until the server ends the stream; on a connection that is closed then."""
        answer = self._send("GET", path, None, "application/json", {"watch": "1", **query})
        assert answer.status == http.client.OK, answer.read()
        with contextlib.closing(answer):
            for line in answer:
                yield json.loads(line)


def pool(name: str, *cidrs: str, mask: int = 24, **more: Any) -> Manifest:
    """A CiliumPodIPPool of IPv4."""
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name},
        "spec": {"ipv4": {"cidrs": list(cidrs or ("10.0.0.0/16",)), "maskSize": mask, **more}},
    }


def claim(name: str, **more: Any) -> Manifest:
    """An IPAMClaim of the namespace default, whose kind has a status apart."""
    return {
        "apiVersion": "k8s.cni.cncf.io/v1alpha1",
        "kind": "IPAMClaim",
        "metadata": {"name": name},
        "spec": {"network": "tenant", "interface": "net1"},
        **more,
    }
