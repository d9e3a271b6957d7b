import base64
import datetime
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.kube import certificates

NOW = datetime.datetime.now(datetime.UTC)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(scope="session")
def authority() -> certificates.Authority:
    return certificates.Authority()


@pytest.fixture
def config(authority: certificates.Authority) -> Callable[..., str]:
    """A kubeconfig's text; `cluster` and `user` are laid over its one cluster and one user."""

    def make(
        cluster: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
        **top: Any,
    ) -> str:
        its_cluster = {
            "server": "https://10.1.2.3:6443",
            "certificate-authority-data": encoded(authority.pem),
        }
        entries = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "east", "cluster": its_cluster | (cluster or {})}],
            "users": [
                {"name": "admin", "user": {"token": "canary.token"} if user is None else user}
            ],
            "contexts": [{"name": "prod", "context": {"cluster": "east", "user": "admin"}}],
            "current-context": "prod",
        }
        return yaml.safe_dump(entries | top)

    return make
