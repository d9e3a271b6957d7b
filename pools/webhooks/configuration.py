"""The webhook configurations with which a cluster asks this register.

Each app registers its own on `ready()`.
"""

from __future__ import annotations

import base64
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import Cluster

SECONDS = 3
FAIL, IGNORE = "Fail", "Ignore"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
OWN_NAMESPACE = "cadastre"  # where deploy/kubernetes puts what is ours
_POOLS = (resources.CILIUM_POD_IP_POOL, resources.CILIUM_POD_IP_POOL_V2ALPHA1)


def _always(_: Cluster) -> bool:
    return True


@dataclass(frozen=True)
class Hook:
    """One webhook: its address, and what makes an API server call it.

    `address` is the last part of its path. `rules` are those of the configuration, `selector` its
    objectSelector. Of what has a namespace, kube-system and our own are left out: their pods must
    start while nothing answers. `wanted` says of which clusters the manifest is printed unasked.
    """

    address: str  # validate-ciliumpodippools
    kind: str  # VALIDATING or MUTATING
    name: str  # of the configuration; API servers call mutating ones in the order of their names
    webhook: str  # with a domain
    rules: tuple[Mapping[str, Any], ...]
    failure_policy: str = FAIL
    selector: Mapping[str, Any] | None = None
    wanted: Callable[[Cluster], bool] = _always

    @property
    def is_namespaced(self) -> bool:
        return any(rule["scope"] == "Namespaced" for rule in self.rules)


CILIUM_POD_IP_POOLS = Hook(
    address="validate-ciliumpodippools",
    kind=VALIDATING,
    name="cadastre-ciliumpodippools",
    webhook="ciliumpodippools.cadastre.internal",
    rules=(
        {
            "apiGroups": [_POOLS[0].group],
            "apiVersions": [each.version for each in _POOLS],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [_POOLS[0].plural],
            "scope": "Cluster",
        },
    ),
)
HOOKS: list[Hook] = []  # filled by pools.extension


def path(hook: Hook, cluster: str, key: str = "") -> str:
    """Where the cluster asks; without a key only a client certificate opens it."""
    return "/".join(["/webhooks/v1", *filter(None, (cluster, key)), hook.address])


def manifest(
    hook: Hook,
    client: Mapping[str, Any],
    *,
    ca: str = "",
    failure_policy: str = "",
    own_namespace: str = OWN_NAMESPACE,
) -> dict[str, Any]:
    """The object; `client` is what `by_url` or `by_service` gave, `ca` PEM text ("": system roots)."""
    bundle = {"caBundle": base64.b64encode(ca.encode()).decode()} if ca else {}
    called: dict[str, Any] = {
        "name": hook.webhook,
        "clientConfig": {**client, **bundle},
        "rules": [dict(rule) for rule in hook.rules],
    }
    if hook.is_namespaced:
        called["namespaceSelector"] = {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system", own_namespace],
                }
            ]
        }
    if hook.selector is not None:
        called["objectSelector"] = dict(hook.selector)
    called |= {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy or hook.failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": SECONDS,
    }
    if hook.kind == MUTATING:
        called["reinvocationPolicy"] = "IfNeeded"  # what others change afterwards is seen, too
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": hook.kind,
        "metadata": {"name": hook.name},
        "webhooks": [called],
    }


def by_url(url: str, at: str) -> dict[str, Any]:
    """For a server outside of the cluster; InvalidInput unless it is `https://host[:port]`.

    `at` is what `path` gave.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.path not in {"", "/"} or "@" in url or parts.query or parts.fragment:
        raise errors.InvalidInput.for_field("url", "url", "must be https://host[:port]", url)
    return {"url": f"https://{parts.netloc}{at}"}


def by_service(service: str, at: str) -> dict[str, Any]:
    """For a Service of the cluster itself: `namespace/name[:port]`."""
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or not (port or "443").isdecimal():
        message = "must be namespace/name[:port]"
        raise errors.InvalidInput.for_field("service", "service", message, service)
    return {
        "service": {"namespace": namespace, "name": name, "port": int(port or "443"), "path": at}
    }


def certificates(text: str) -> str:
    """The certificates of a PEM text and nothing else, least of all a private key."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = [f"{begin}{part.partition(end)[0]}{end}\n" for part in text.split(begin)[1:]]
    try:
        ssl.create_default_context(cadata="".join(found) or "none")
    except (ssl.SSLError, ValueError) as error:
        raise errors.InvalidInput.for_field("ca", "ca", "must be PEM certificates") from error
    return "".join(found)
