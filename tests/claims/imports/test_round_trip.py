"""What the list of entries exports, imported again, changes nothing."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from claims.imports import drafts
from claims.imports.mapping import ImportOptions
from tests.claims import worlds

pytestmark = pytest.mark.django_db


def _exported() -> bytes:
    get_user_model().objects.create_superuser("root", password="secret")
    client = Client()
    client.login(username="root", password="secret")
    answer = client.get("/admin/claims/entry/export/")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_an_export_of_entries_is_unchanged_as_an_import() -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    of = worlds.ippool(network)
    entry = {"namespace": "blue", "note": "=1+1"}
    worlds.entry(of, "00:1a:4b:00:00:0a", "10.0.0.5/24", vm="web", **entry)
    worlds.entry(of, "00:1a:4b:00:00:0b", "10.0.0.6/24", "fd00::6/64", vm="db", **entry)
    text = _exported()
    assert b"'=1+1" in text  # no formula for a spreadsheet
    draft = drafts.IMPORTS.create(
        [("entries.csv", text)],
        ImportOptions(network.cluster, network=network, namespace="blue"),
        author=worlds.BY,
    )
    assert {status: count for status, count in draft.counts.items() if count} == {"unchanged": 2}
