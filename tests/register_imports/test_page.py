"""The page of a register import: what a row is in the register, and where it leads once it is written."""

from __future__ import annotations

import pytest
from django.urls import reverse

from pools.models import RegisterImport
from pools.register.imports import drafts
from tests import factories, people
from tests.register_imports import sources

pytestmark = pytest.mark.django_db


def _page(row: RegisterImport) -> str:
    url = reverse("admin:pools_import_change", args=[row.pk])
    return people.browser().get(url).content.decode()


def test_rows_name_the_registered_pool_and_lead_to_what_was_written() -> None:
    cluster = factories.cluster()
    factories.pool("10.64.0.0/20", name="edge", within=cluster)
    prefixes = [
        ("10.64.0.0/20", "active", "", "", "", "of the sites"),
        ("10.70.1.0/24", "active", "", "", "", ""),
        ("10.70.300.0/24", "active", "", "", "", ""),
    ]
    draft = sources.draft(sources.table(sources.IMPORT_PREFIX, prefixes), cluster=cluster)
    page = _page(draft)
    assert ">edge<" in page
    assert "10.64.0.0-20" not in page
    assert ">10.70.1.0-24<" in page
    assert "/admin/find/?q=10.70" not in page

    drafts.IMPORTS.commit(draft.pk, author=sources.BY, skip_bad=True)
    page = _page(draft)
    assert 'href="/admin/find/?q=10.70.1.0%2F24"' in page
    assert 'href="/admin/find/?q=10.64.0.0%2F20"' in page
    assert "/admin/find/?q=10.70.300" not in page


def test_a_new_prefix_names_what_it_overlaps_elsewhere() -> None:
    cluster = factories.cluster()
    factories.pool("10.70.0.0/16", name="edge")  # of another cluster
    prefixes = [(cidr, "active", "", "", "", "") for cidr in ("10.70.1.0/24", "10.80.1.0/24")]
    draft = sources.draft(sources.table(sources.IMPORT_PREFIX, prefixes), cluster=cluster)
    page = _page(draft)
    assert page.count("Overlaps 10.70.0.0/16 of pool edge in") == 1
    drafts.IMPORTS.commit(draft.pk, author=sources.BY)
    assert "Overlaps 10.70" not in _page(draft)
