"""One throw-away PostgreSQL for the whole run, started before Django reads its settings.

TEST_DATABASE_URL uses a server that is there already; TEST_POSTGRES_BIN starts another version's
programs (`/usr/lib/postgresql/15/bin`) in the same way. TEST_POOLER, a PgBouncer (`/usr/sbin/pgbouncer`), lets
the tests' own connections lead through it, in transaction mode.

Hypothesis tries the same examples in every run, so that a red build is red again: 25 of each property, 300 with
`--hypothesis-profile=thorough`. Vary them with a seed: `pytest tests/core --hypothesis-profile=explore`.
"""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import secrets
import socket
import urllib.parse
from typing import TYPE_CHECKING, Any

import django
import hypothesis
import pytest
from django.conf import settings

from pools.platform import heartbeat
from tests import schedule, servers, slowest_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.pools.conftest import Clock

os.environ["DJANGO_SETTINGS_MODULE"] = "ipam_site.settings"
os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
os.environ["IPAM_KEY_RING"] = secrets.token_urlsafe(32)
os.environ["IPAM_HTTPS"] = "0"
os.environ["IPAM_DATA"] = "/nonexistent"
os.environ["REDIS_URL"] = ""
# Tests of the allocator need no org; those of the rule switch it off again (tests/edges/test_api_owners.py).
os.environ["IPAM_ALLOW_UNOWNED_ALLOCATIONS"] = "1"
# Another thread would write into the tables of whatever test runs at that moment.
os.environ["IPAM_MEASURE_SECONDS"] = "0"
_POOLER = os.environ.get("TEST_POOLER")
if _POOLER:
    os.environ["DB_POOLER"] = "1"
# With xdist, the first process starts the server and its workers inherit the address.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL") or servers.start_postgres()
    os.environ["TEST_FOLDER"] = servers.shared_folder()
# pytest-django does this too early for us: before it reads this file, or not at all.
django.setup()
# What only protects stored passwords takes a second for each; sites that are processes of their own keep it.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each test client would look through all static files again.
settings.WHITENOISE_AUTOREFRESH = True
# A machine that stalls for half a minute loses no connection.
if not _POOLER:
    settings.DATABASES["default"]["OPTIONS"]["options"] += (
        " -c idle_in_transaction_session_timeout=0"
    )

# Before any test is collected: `@settings(…)` takes what it does not say from the profile of then.
for _name, _examples in {"suite": 25, "thorough": 100}.items():
    hypothesis.settings.register_profile(
        _name, deadline=None, max_examples=_examples, derandomize=True, database=None
    )
hypothesis.settings.register_profile("explore", deadline=None, max_examples=5000, database=None)
hypothesis.settings.load_profile("suite")

_HERE = pathlib.Path(__file__).parent
# Folders in which each test has a database, unless it says which kind.
_WITH_DATABASE = {
    "alerts", "checks", "claims", "dashboard", "handlers", "history", "lists", "metrics",
    "observed", "pools", "reconcile", "register_imports", "security", "signon",
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--with-e2e", action="store_true", help="also run the tests with a browser")
    parser.addoption(
        "--real",
        action="store_true",
        help="run the tests of clusters against the kube-apiserver of KUBEBUILDER_ASSETS",
    )
    parser.addoption(
        "--record-answers",
        action="store_true",
        help="write the answers of tests/edges/test_api_recorded.py anew",
    )
    slowest_files.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--slowest-files"):
        config.pluginmanager.register(slowest_files.Stopwatch())


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.getoption("--slowest-files"):
        slowest_files.write_summary(terminalreporter, count)


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Files of exhaustive tests are not even read where no such test is to run."""
    if config.getoption("markexpr") != "not exhaustive" or not collection_path.is_file():
        return None
    return schedule.is_exhaustive(collection_path) or None


def pytest_collection_finish() -> None:
    """Ten thousand tests and all of Django stay until the end: looking for garbage among them takes long."""
    heartbeat.collect_seldom()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return schedule.scheduler(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ids = collections.Counter(item.nodeid for item in items)
    if twice := [name for name, count in ids.items() if count > 1]:
        raise pytest.UsageError(f"pytest-xdist would run one test of each of these ids: {twice}")
    schedule.mark(items)
    skip = pytest.mark.skip(reason="needs --with-e2e")
    skip_real = pytest.mark.skip(reason="needs --real")
    for item in items:
        kind = item.path.relative_to(_HERE).parts[0]
        if kind in {"concurrent", "e2e"}:
            item.add_marker(kind)
        if kind in _WITH_DATABASE and not item.get_closest_marker("django_db"):
            item.add_marker("django_db")
        if kind == "e2e" and not config.getoption("--with-e2e"):
            item.add_marker(skip)
        if kind == "real" and not config.getoption("--real"):
            item.add_marker(skip_real)
    if config.getoption("--real"):
        others = [item for item in items if not schedule.is_real(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if schedule.is_real(item)]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """All processes copy one database to which the migrations were applied."""
    from django.db import connection

    connection.settings_dict["TEST"]["TEMPLATE"] = servers.migrated(os.environ["DATABASE_URL"])


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Tests with transactions of their own leave what the migrations wrote, and nothing else."""
    from django.test import TransactionTestCase

    from tests import flush

    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        if _POOLER:
            stack.enter_context(_through_pooler(_POOLER))
        with django_db_blocker.unblock():
            empty = flush.Flush()
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        yield


@contextlib.contextmanager
def _through_pooler(program: str) -> Iterator[None]:
    """Let the connections of this process lead through a pooler, which is gone before the database is dropped."""
    from django.db import connection, connections

    from tests.ha import pgbouncer

    place = connection.settings_dict
    direct = {key: place[key] for key in ("HOST", "PORT")}
    limits = "SET statement_timeout = '60s'; SET lock_timeout = '10s'"
    limits += "; SET idle_in_transaction_session_timeout = 0"
    url = os.environ["DATABASE_URL"]
    with pgbouncer.running(program, url, "default_pool_size = 40", limits=limits) as pooled:
        connections.close_all()
        address = urllib.parse.urlsplit(pooled)
        place |= {"HOST": address.hostname, "PORT": address.port}
        try:
            yield
        finally:
            connections.close_all()
            place |= direct


@pytest.fixture
def clock(db: None) -> Clock:
    """Moves the register's clock within the test."""
    from tests.pools.conftest import Clock

    return Clock()


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Rows that other fixtures of the module write stay until its end; those of a test do not."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def demo_fleet(module_transaction: None) -> None:
    """The demo, for modules in which all tests begin with it."""
    from pools.register.demo import demo

    assert demo.load()


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    """A listener on this machine that nobody may reach (`servers.heard`)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a throw-away Redis of this test process."""
    with servers.redis() as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def patient_webhooks() -> Iterator[None]:
    """A machine that stalls for half a second fails no test; those of the limits set them themselves."""
    from claims.workloads import vm_lookup
    from pools.webhooks import register

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register, "STATEMENT_MS", 20_000)
        patch.setattr(vm_lookup, "WAIT_MS", 20_000)
        yield
