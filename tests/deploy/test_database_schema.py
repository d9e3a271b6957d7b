"""A database whose user may not use the schema public is refused before anything is written."""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from ipam_site import apps

pytestmark = pytest.mark.django_db


def test_the_schema_public_is_fine() -> None:
    apps._require_schema("default")


def test_another_schema_and_a_user_without_the_right_are_refused() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA ipam")
        cursor.execute("SET LOCAL search_path TO ipam")
        with pytest.raises(ImproperlyConfigured, match="creates tables in ipam"):
            apps._require_schema("default")
        cursor.execute("SET LOCAL search_path TO nowhere")
        with pytest.raises(ImproperlyConfigured, match="creates tables in none"):
            apps._require_schema("default")
        cursor.execute("SET LOCAL search_path TO public")
        cursor.execute("REVOKE CREATE ON SCHEMA public FROM pg_database_owner, PUBLIC")
        with pytest.raises(ImproperlyConfigured, match="GRANT CREATE"):
            apps._require_schema("default")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "variables", [{"SCRIPT_NAME": "/ipam"}, {"IPAM_URL": "https://h.example.org/ipam"}]
)
def test_a_site_below_a_path_does_not_start(variables: dict[str, str]) -> None:
    code = "import ipam_site.settings"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "at the root of a host name of its own" in result.stderr
