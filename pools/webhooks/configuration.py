"""The ValidatingWebhookConfiguration with which a cluster asks this register."""

from __future__ import annotations

import base64
import ssl
import urllib.parse
from typing import Any

from pools.core import errors, resources

NAME = "cadastre-ciliumpodippools"
WEBHOOK = "ciliumpodippools.cadastre.internal"
SECONDS = 3
PATH = "/webhooks/v1/{}/validate-ciliumpodippools"
_POOLS = (resources.CILIUM_POD_IP_POOL, resources.CILIUM_POD_IP_POOL_V2ALPHA1)


def path(cluster: str, key: str = "") -> str:
    """Where the cluster asks; without a key only a client certificate opens it."""
    return PATH.format(f"{cluster}/{key}" if key else cluster)


def manifest(
    client: dict[str, Any], *, ca: str = "", failure_policy: str = "Fail"
) -> dict[str, Any]:
    """The object; `client` is what `by_url` or `by_service` gave, `ca` PEM text ("": system roots)."""
    if ca:
        client = client | {"caBundle": base64.b64encode(ca.encode()).decode()}
    rule = {
        "apiGroups": [_POOLS[0].group],
        "apiVersions": [each.version for each in _POOLS],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [_POOLS[0].plural],
        "scope": "Cluster",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": WEBHOOK,
                "clientConfig": client,
                "rules": [rule],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": failure_policy,
                "matchPolicy": "Equivalent",
                "timeoutSeconds": SECONDS,
            }
        ],
    }


def by_url(url: str, cluster: str, key: str = "") -> dict[str, Any]:
    """For a server outside of the cluster; InvalidInput unless it is `https://host[:port]`."""
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.path not in {"", "/"} or "@" in url or parts.query or parts.fragment:
        raise errors.InvalidInput.of("url", "url", "must be https://host[:port]", url)
    return {"url": f"https://{parts.netloc}{path(cluster, key)}"}


def by_service(service: str, cluster: str, key: str = "") -> dict[str, Any]:
    """For a Service of the cluster itself: `namespace/name[:port]`."""
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or not (port or "443").isdecimal():
        message = "must be namespace/name[:port]"
        raise errors.InvalidInput.of("service", "service", message, service)
    return {
        "service": {
            "namespace": namespace,
            "name": name,
            "port": int(port or "443"),
            "path": path(cluster, key),
        }
    }


def certificates(text: str) -> str:
    """The certificates of a PEM text and nothing else, least of all a private key."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = [f"{begin}{part.partition(end)[0]}{end}\n" for part in text.split(begin)[1:]]
    try:
        ssl.create_default_context(cadata="".join(found) or "none")
    except (ssl.SSLError, ValueError) as error:
        raise errors.InvalidInput.of("ca", "ca", "must be PEM certificates") from error
    return "".join(found)
