"""`manage.py ipam check`: tables, JSON, CSV, exit statuses."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from pools.models import CheckRun
from pools.platform.checks import registry
from pools.register.demo import demo
from tests import factories

pytestmark = pytest.mark.django_db


def ipam(*words: str) -> tuple[int, str]:
    """Exit status and output."""
    out = io.StringIO()
    try:
        call_command("ipam", *words, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.mark.exhaustive
def test_a_clean_register() -> None:
    demo.load()
    status, text = ipam("check")
    assert status == 0
    assert all(code in text for code in registry.codes())
    assert f"{len(registry.codes())} checks, 0 violations." in text
    assert CheckRun.objects.get().source == "command"


def test_what_is_wrong_in_words_and_then_repaired() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.cidr(pool).free_spans.all().delete()
    status, text = ipam("check", "--only", "free_space", "leases")
    assert status == 3
    assert (
        f"10.0.0.0/24 of pool {pool}: 254 blocks from 10.0.0.1/32 to 10.0.0.254/32 can never be allocated"
        in text
    )
    assert "2 checks, 1 violation." in text
    status, text = ipam("check", "--only", "free_space", "--repair", "-o", "json")
    (row,) = json.loads(text)
    assert status == 0
    assert (row["state"], row["violations"], row["repaired"]) == ("repaired", 0, 1)
    status, text = ipam("check", "--only", "free_space", "-o", "csv")
    (row,) = csv.DictReader(text.splitlines())
    assert (status, row["check"], row["state"]) == (0, "free_space", "clean")


def test_refusals() -> None:
    with pytest.raises(CommandError, match="unknown_check: there is no check nonsense"):
        ipam("check", "--only", "nonsense")
    for seconds in ("0", "-1", "x", "9999999"):
        with pytest.raises((CommandError, SystemExit)):
            ipam("check", "--seconds", seconds)
