import os
import subprocess
import sys

import pytest
from celery.schedules import crontab
from django.conf import settings


def test_a_message_comes_back_only_after_its_task_must_be_over() -> None:
    assert settings.CELERY_VISIBILITY_TIMEOUT > 2 * settings.CELERY_TASK_TIME_LIMIT


def test_a_tick_is_gone_when_the_next_one_comes() -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        period = entry["schedule"]
        seconds = 24 * 3600 if isinstance(period, crontab) else period
        assert entry["options"]["expires"] <= seconds


def test_celery_knows_every_setting() -> None:
    from celery.app import defaults

    celery_names = {name.lower() for name in defaults.DEFAULTS}
    ours = {name[7:].lower() for name in dir(settings) if name.startswith("CELERY_")}
    assert ours - celery_names == {"visibility_timeout"}, "a misspelt one would be ignored"


@pytest.mark.exhaustive
@pytest.mark.parametrize(("role", "limit"), [("web", "5s"), ("worker", "1min"), ("command", "0")])
def test_the_limits_of_each_kind_of_process(role: str, limit: str) -> None:
    code = (
        "import django; django.setup()\n"
        "from django.db import connection as c\n"
        "for name in ('statement_timeout', 'idle_in_transaction_session_timeout',"
        " 'synchronous_commit', 'application_name'):\n"
        "    with c.cursor() as cursor: cursor.execute('SHOW ' + name); print(cursor.fetchone()[0])"
    )
    output = _python(code, IPAM_ROLE=role).stdout.split()
    assert output[:2] == [limit, "30s"]
    assert output[3] == f"cadastre-{role}"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("environment", "why"),
    [
        pytest.param({"DEBUG": "1"}, "DEBUG=1 refuses", id="debug-with-a-production-key"),
        pytest.param({"DEBUG": "perhaps"}, "DEBUG must be 1 or 0", id="debug-typo"),
        pytest.param({"IPAM_ROLE": "wbe"}, "IPAM_ROLE must be", id="role-typo"),
        pytest.param({"DATABASE_URL": "mysql://h/n"}, "DATABASE_URL", id="other-database"),
    ],
)
def test_a_misconfiguration_stops_the_start(environment: dict[str, str], why: str) -> None:
    done = _python("import ipam_site.settings", **environment)
    assert done.returncode != 0
    assert why in done.stderr


@pytest.mark.exhaustive
def test_production_is_the_default() -> None:
    code = (
        "from ipam_site import settings as s;"
        "print(s.DEBUG, s.SECURE_SSL_REDIRECT, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE,"
        " s.SECURE_HSTS_SECONDS > 0, '*' in s.ALLOWED_HOSTS)"
    )
    assert _python(code, IPAM_HTTPS="").stdout.split() == [
        "False",
        "True",
        "True",
        "True",
        "True",
        "False",
    ]


@pytest.mark.exhaustive
def test_without_any_key_nothing_is_signed() -> None:
    done = _python("from django.core import signing; print(signing.dumps(1))", SECRET_KEY="")
    assert "SECRET_KEY setting must not be empty" in done.stderr


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
