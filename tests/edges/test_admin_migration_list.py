"""The list of the fleet's CIDR migrations: what it shows, filters, and who may see it."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from pools.cidr_migrations import migrations
from pools.cidr_migrations.progress import MigrationStep
from pools.models import CIDRMigration, Pool
from tests import factories, people

LIST = "admin:pools_cidrmigration_changelist"


def _start(pool: Pool, *steps: MigrationStep) -> CIDRMigration:
    cidr = pool.cidrs.get().cidr
    migration = migrations.start_migration(
        migrations.plan_migration(pool, cidr), author=factories.BY
    )
    for step in steps:
        migrations.take_step(migration.pk, step, author=factories.BY)
    return migration


def _shown(**query: Any) -> str:
    page = people.browser(people.VIEWER).get(reverse(LIST), query).content.decode()
    return " ".join(strip_tags(page.partition("<tbody>")[2].partition("</tbody>")[0]).split())


@pytest.fixture
def draining() -> CIDRMigration:
    pool = factories.pool("10.20.0.0/28", name="green", cooldown=0)
    blocks = [factories.take(pool) for _ in range(4)]
    migration = _start(pool, MigrationStep.RESERVE)
    factories.give_back(blocks[0])
    return migration


def test_a_row_says_how_far_it_is(draining: CIDRMigration) -> None:
    row = _shown()
    for part in ("10.20.0.0/28", "draining", "25%", "1 of 4 blocks released", "green"):
        assert part in row, part


def test_filters_and_search(draining: CIDRMigration) -> None:
    aborted = factories.pool("10.30.0.0/28", name="blue")
    _start(aborted, MigrationStep.ABORT)
    planned = factories.pool("10.40.0.0/28", name="red")
    _start(planned)
    for query, name in (
        ({"state": "draining"}, "green"),
        ({"state": "aborted"}, "blue"),
        ({"state": "planned"}, "red"),
        ({"pool": planned.pk}, "red"),
        ({"cluster": planned.cluster_id, "state": "planned"}, "red"),
        ({"q": "10.30.0"}, "blue"),
    ):
        row = _shown(**query)
        assert name in row, query
        assert len([other for other in ("green", "blue", "red") if other in row]) == 1, query
    assert _shown(o="4").index("blue") < _shown(o="4").index("green") < _shown(o="4").index("red")


def test_the_statements_do_not_grow_with_the_migrations(draining: CIDRMigration) -> None:
    def statements(**query: Any) -> int:
        with CaptureQueriesContext(connection) as captured:
            _shown(**query)
        return len(captured)

    numbers = statements(), statements(state="draining")
    for number in range(3):
        pool = factories.pool(f"10.5{number}.0.0/28")
        factories.take(pool)
        _start(pool, MigrationStep.RESERVE)
    assert (statements(), statements(state="draining")) == numbers
    assert _shown().count("0 of 1 blocks released") == 3


def test_a_row_leads_to_its_page(draining: CIDRMigration) -> None:
    browser = people.browser(people.VIEWER)
    answer = browser.get(reverse("admin:pools_cidrmigration_change", args=[draining.pk]))
    page = reverse("admin:pools_pool_migration", args=[draining.pool_id, draining.pk])
    assert answer.headers["Location"] == page
    assert page in browser.get(reverse(LIST)).content.decode()
