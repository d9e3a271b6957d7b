"""The text of a kubeconfig."""

import base64

import yaml

from tests.kube.certificates import Pair


def _data(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def text(server: str, ca: str, *, token: str = "", pair: Pair | None = None) -> str:
    """YAML with one context, of a token or of a client certificate."""
    user: dict[str, str] = {"token": token} if token else {}
    if pair is not None:
        user["client-certificate-data"] = _data(pair.certificate)
        user["client-key-data"] = _data(pair.key)
    cluster = {"server": server, "certificate-authority-data": _data(ca)}
    return str(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "test", "user": user}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "current-context": "test",
            }
        )
    )
