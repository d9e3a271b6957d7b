"""One throw-away PostgreSQL for the whole run, started before Django reads its settings.

TEST_DATABASE_URL uses a server that is there already; TEST_POSTGRES_BIN starts another version's
programs (`/usr/lib/postgresql/15/bin`) in the same way.
"""

from __future__ import annotations

import os
import pathlib
import secrets
from typing import TYPE_CHECKING

import django
import pytest

from tests import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ["DJANGO_SETTINGS_MODULE"] = "ipam_site.settings"
os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
os.environ["IPAM_KEY_RING"] = secrets.token_urlsafe(32)
os.environ["IPAM_HTTPS"] = "0"
os.environ["IPAM_DATA"] = "/nonexistent"
os.environ["REDIS_URL"] = ""
# With xdist, the first process starts the server and its workers inherit the address.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL") or servers.start_postgres()
# pytest-django does this too early for us: before it reads this file, or not at all.
django.setup()

_HERE = pathlib.Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--with-e2e", action="store_true", help="also run the tests with a browser")
    parser.addoption(
        "--real",
        action="store_true",
        help="run the tests of clusters against the kube-apiserver of KUBEBUILDER_ASSETS",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="needs --with-e2e")
    for item in items:
        kind = item.path.relative_to(_HERE).parts[0]
        if kind in {"concurrent", "e2e"}:
            item.add_marker(kind)
        if kind == "e2e" and not config.getoption("--with-e2e"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a throw-away Redis of this test process."""
    with servers.redis() as url:
        yield url
