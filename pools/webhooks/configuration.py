"""The webhook configurations that make a cluster's API server call this site.

Each app registers its webhooks in `ready()`.
"""

import base64
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import Cluster

SECONDS = 3  # timeout of the API server
FAIL, IGNORE = "Fail", "Ignore"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
OWN_NAMESPACE = "cadastre"  # the namespace of the objects of deploy/kubernetes
_POOLS = (resources.CILIUM_POD_IP_POOL, resources.CILIUM_POD_IP_POOL_V2ALPHA1)


@dataclass(frozen=True)
class Hook:
    """One webhook: its endpoint, and the requests for which an API server calls it.

    `address` is the last part of its path. `rules` and `selector` are the rules and the
    objectSelector of the configuration. Webhooks for namespaced objects skip kube-system and
    Cadastre's own namespace, whose pods must start while the webhook is down. `applies_to` tells
    for which clusters `manage.py webhook` prints the manifest by default.
    """

    address: str  # validate-ciliumpodippools
    kind: str  # VALIDATING or MUTATING
    name: (
        str  # of the configuration; API servers call mutating webhooks in the order of these names
    )
    webhook: str  # qualified with a domain
    rules: tuple[Mapping[str, Any], ...]
    failure_policy: str = FAIL
    selector: Mapping[str, Any] | None = None
    applies_to: Callable[[Cluster], bool] = lambda _: True

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
            "apiVersions": [resource.version for resource in _POOLS],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [_POOLS[0].plural],
            "scope": "Cluster",
        },
    ),
)
HOOKS: list[Hook] = []  # filled by pools.extension


def path(hook: Hook, cluster: str, key: str = "") -> str:
    """Return the path of the webhook; without a key it requires a client certificate."""
    return "/".join(["/webhooks/v1", *filter(None, (cluster, key)), hook.address])


def manifest(
    hook: Hook,
    client: Mapping[str, Any],
    *,
    ca: str = "",
    failure_policy: str = "",
    own_namespace: str = OWN_NAMESPACE,
) -> dict[str, Any]:
    """Return the webhook configuration.

    `client` is the clientConfig of `by_url` or `by_service`; `ca` is PEM text, "" for the system
    roots.
    """
    bundle = {"caBundle": base64.b64encode(ca.encode()).decode()} if ca else {}
    webhook: dict[str, Any] = {
        "name": hook.webhook,
        "clientConfig": {**client, **bundle},
        "rules": [dict(rule) for rule in hook.rules],
    }
    if hook.is_namespaced:
        webhook["namespaceSelector"] = {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system", own_namespace],
                }
            ]
        }
    if hook.selector is not None:
        webhook["objectSelector"] = dict(hook.selector)
    webhook |= {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy or hook.failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": SECONDS,
    }
    if hook.kind == MUTATING:
        webhook["reinvocationPolicy"] = "IfNeeded"  # review later changes of other webhooks, too
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": hook.kind,
        "metadata": {"name": hook.name},
        "webhooks": [webhook],
    }


def by_url(url: str, url_path: str) -> dict[str, Any]:
    """Return the clientConfig for a server outside of the cluster; `url_path` comes from `path`.

    Raises InvalidInput unless `url` is `https://host[:port]`.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        is_valid = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.path not in {"", "/"} or "@" in url or parts.query or parts.fragment:
        raise errors.InvalidInput.for_field("url", "url", "must be https://host[:port]", url)
    return {"url": f"https://{parts.netloc}{url_path}"}


def by_service(service: str, url_path: str) -> dict[str, Any]:
    """Return the clientConfig for a Service of the cluster: `namespace/name[:port]`.

    Raises InvalidInput for another format.
    """
    namespace, _, rest = service.partition("/")
    name, _, port = rest.partition(":")
    if not namespace or not name or not (port or "443").isdecimal():
        message = "must be namespace/name[:port]"
        raise errors.InvalidInput.for_field("service", "service", message, service)
    return {
        "service": {
            "namespace": namespace,
            "name": name,
            "port": int(port or "443"),
            "path": url_path,
        }
    }


def certificates(text: str) -> str:
    """Return only the certificates of a PEM text, never a private key. Raises InvalidInput."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    blocks = [f"{begin}{part.partition(end)[0]}{end}\n" for part in text.split(begin)[1:]]
    try:
        ssl.create_default_context(cadata="".join(blocks) or "none")
    except (ssl.SSLError, ValueError) as error:
        raise errors.InvalidInput.for_field("ca", "ca", "must be PEM certificates") from error
    return "".join(blocks)
