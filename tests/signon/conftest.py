"""The site with sign-on: what groups grant, and the client of a provider."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from tests.signon import issuer as issuers, provider_process
from tests.signon.issuer import Issuer
from tests.signon.provider_process import SECRET, Provider


@pytest.fixture(autouse=True)
def groups(settings: Any) -> None:
    """As an organization would set it."""
    settings.IPAM_SIGN_ON_ROLES = json.dumps(
        {"net-admins": "administrator", "/net/ops": ["operator", "viewer"], "auditors": "viewer"}
    )
    settings.IPAM_SIGN_ON_NAMESPACES = r"ns-(?P<namespace>[a-z-]+?)(@(?P<cluster>[a-z]+))?"


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with provider_process.running(tmp_path_factory.mktemp("provider")) as process:
        yield process


@pytest.fixture
def use(settings: Any) -> Callable[..., None]:
    def use(issuer: str, ca_file: str, algorithm: str = "RS256") -> None:
        settings.IPAM_OIDC_ISSUER = issuer
        settings.IPAM_OIDC_CLIENT_ID = f"cadastre-{algorithm}"
        settings.IPAM_OIDC_CLIENT_SECRET = SECRET
        settings.IPAM_OIDC_NAME = "the Staff Directory"
        settings.IPAM_OIDC_SCOPES = ["openid", "profile", "email", "groups"]
        settings.IPAM_OIDC_CA_FILE = ca_file

    return use


@pytest.fixture
def issuer(tmp_path: pathlib.Path, use: Callable[..., None]) -> Iterator[Issuer]:
    with issuers.running(tmp_path) as issuer:
        use(issuer.url, issuer.ca_file)
        yield issuer


class Browser(Client):
    """A browser of the site that signs in at the provider."""

    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self.provider = provider

    def way_back(self, login: str, path: str = "/sign-on/") -> str:
        return self.provider.sign_in(self.get(path, secure=True).headers["Location"], login)

    def sign_in(self, login: str, path: str = "/sign-on/") -> Any:
        return self.get(self.way_back(login, path), secure=True)


@pytest.fixture
def browser(provider: Provider, use: Callable[..., None]) -> Browser:
    use(provider.issuer, provider.ca_file)
    return Browser(provider)
