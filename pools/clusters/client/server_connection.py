"""Requests to one Kubernetes API server; the only module that imports `kubernetes`.

The official client sends them. Its models are not used, because raw JSON is several times faster and has
fields that the models lack.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib import parse

from django.conf import settings

from pools.clusters.client import responses
from pools.core.kubernetes.resources import Manifest
from pools.platform import process_metrics
from pools.platform.outbound import faults, guard, transport
from pools.platform.outbound.credentials import Access

if TYPE_CHECKING:
    import urllib3

Body = Manifest | list[Manifest] | bytes

_WHOLE_ANSWER = 4  # multiple of the read timeout
_VERBS = {"GET": "get", "POST": "create", "PATCH": "apply", "PUT": "update", "DELETE": "delete"}


class ServerConnection:
    """One keep-alive connection to an API server, with one request at a time.

    `cluster` is the label of request metrics; "" counts none. `timeouts` are the seconds to connect and
    to wait for the next bytes; a whole response may take four times the latter.
    """

    def __init__(
        self,
        access: Access,
        *,
        cluster: str = "",
        allow_loopback: bool = False,
        timeouts: tuple[float, float] = (5, 30),
        resolver: guard.Resolver = guard.system_resolver,
    ) -> None:
        client = _official_client()
        target = guard.parse_url(access.server)

        def addresses() -> list[str]:
            return guard.resolve(
                target,
                allow_loopback=allow_loopback,
                loopback_setting="IPAM_ALLOW_LOOPBACK_CLUSTERS",
                resolver=resolver,
            )

        self._access = access
        self._cluster = cluster
        self._server = target.url
        self._connect, self._read = timeouts
        # Without this, a proxy of the environment would be contacted before the pool is replaced below.
        configuration = client.Configuration(host=target.url, proxy="", no_proxy="*")
        self._api = client.ApiClient(configuration)
        self._no_answer = (*faults.NO_ANSWER, client.ApiException)
        self._connections = transport.Connections(access, addresses)
        self._api.rest_client.pool_manager = self._connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._api.close()

    def interrupt(self) -> None:
        """Make the pending request raise Unreachable at once; called from another thread."""
        self._connections.interrupt()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        response = self._send(method, path, query or {}, body=body, content_type=content_type)
        if not 200 <= response.status < 300:
            refusal = self._refusal(response)
            if isinstance(refusal, faults.StaleVersion):
                process_metrics.count("ipam_stale_writes_rejected_total")
            raise refusal
        return responses.parse_object(self._body(response))

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Body | None = None,
        content_type: str = "application/json",
        read: float = 0,
    ) -> urllib3.BaseHTTPResponse:
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": settings.IPAM_USER_AGENT,
        }
        if token := self._access.bearer():
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = content_type
        url = self._server + path + ("?" + parse.urlencode(query) if query else "")
        timeouts = (self._connect, read or self._read)
        try:
            answer = self._api.call_api(method, url, headers, body, _request_timeout=timeouts)
        except self._no_answer as error:
            self._count(method, query, "none")
            raise faults.fault_of(error) from error
        response: urllib3.BaseHTTPResponse = answer.response
        self._count(method, query, str(response.status))
        return response

    def _count(self, method: str, query: Mapping[str, str], code: str) -> None:
        if self._cluster:
            verb = _VERBS[method]
            if method == "GET" and "watch" in query:
                verb = "watch"
            elif method == "GET" and "limit" in query:
                verb = "list"
            process_metrics.count(
                "ipam_k8s_requests_total", cluster=self._cluster, verb=verb, code=code
            )

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return responses.read_body(response, seconds=self._read * _WHOLE_ANSWER)
        except self._no_answer as error:
            raise faults.fault_of(error) from error

    def _refusal(self, response: urllib3.BaseHTTPResponse) -> faults.ClusterFault:
        return responses.fault_of_response(
            response.status, response.headers, self._body(response), self._secrets()
        )

    def _secrets(self) -> list[str]:
        """Return the credentials of this connection, which its server may repeat."""
        return [self._access.bearer(), self._access.key]


@functools.lru_cache
def _official_client() -> Any:
    """Return `kubernetes.client`; imported at the first use, because the import takes half a second."""
    from kubernetes import client  # noqa: PLC0415

    return client
