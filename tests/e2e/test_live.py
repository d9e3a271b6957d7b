"""Parts of pages renew themselves while somebody looks, disturb nobody, and stop if told to."""

from typing import Any

import pytest

from pools.cidr_migrations import migrations
from pools.cidr_migrations.progress import MigrationStep
from pools.models import Alert, CIDRMigration, Cluster, Connection, Now
from pools.register.demo import demo
from tests import factories
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
ROUND = 6_000  # milliseconds: longer than the time between two requests
SOON = 30_000


class Watch:
    """The requests of a page that ask for its live parts."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.count = 0
        page.on("request", self._request)

    def _request(self, request: Any) -> None:
        self.count += request.headers.get("hx-trigger") == "cad-live"

    def wait(self) -> None:
        """Wait for the next answer."""
        asked = lambda answer: answer.request.headers.get("hx-trigger") == "cad-live"  # noqa: E731
        with self.page.expect_response(asked, timeout=SOON):
            pass

    def wait_round(self) -> int:
        """Wait longer than a round, and return the number of requests meanwhile."""
        before = self.count
        self.page.wait_for_timeout(ROUND)
        return self.count - before


def _draining(visit: Visit) -> tuple[CIDRMigration, Any]:
    """Open the page of a migration that waits for one block."""
    cluster = Cluster.objects.get(name=demo.BERLIN)
    pool = factories.pool("10.201.0.0/24", within=cluster, name="moves", cooldown=0)
    block = factories.take(pool)
    plan = migrations.plan_migration(pool, pool.cidrs.get().cidr)
    migration = migrations.start_migration(plan, author=factories.BY)
    migrations.take_step(migration.pk, MigrationStep.RESERVE, author=factories.BY)
    visit.open(f"/admin/pools/pool/{pool.pk}/migrations/{migration.pk}/")
    visit.page.get_by_text("0 of 1 block released").wait_for()
    visit.page.evaluate("window.sameDocument = true")
    return migration, block


def test_a_drain_and_a_badge_move_by_themselves(visit: Visit) -> None:
    _migration, block = _draining(visit)
    badge = visit.page.locator(".cad-menu-count")
    assert not badge.count()
    factories.give_back(block)
    Alert.objects.create(
        code="x", subject="x", level="error", title="t", since=Now(), seen_at=Now()
    )
    visit.page.get_by_role("button", name="Remove 10.201.0.0/24").wait_for(timeout=SOON)
    badge.get_by_text("1", exact=True).wait_for(timeout=SOON)
    assert visit.page.evaluate("window.sameDocument")


def test_what_has_the_focus_is_left_alone(visit: Visit) -> None:
    page, watch = visit.page, Watch(visit.page)
    _migration, block = _draining(visit)
    link = page.get_by_role("link", name="All blocks of 10.201.0.0/24")
    link.focus()
    factories.give_back(block)
    watch.wait()
    watch.wait()
    assert link.evaluate("link => link === document.activeElement")
    page.evaluate("document.activeElement.blur()")
    page.get_by_role("button", name="Remove 10.201.0.0/24").wait_for(timeout=SOON)


def test_a_list_keeps_what_is_typed_ticked_and_scrolled(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/cluster/")
    state = page.locator("#result_list .field-state").first
    before = state.inner_text()
    page.locator("input.action-select").first.check()
    page.locator("#searchbar").press_sequentially("berl")
    Connection.objects.update(paused=False, succeeded_at=None, failures=9, error_code="unreachable", error="no route")  # fmt: skip
    page.wait_for_function(
        "before => document.querySelector('#result_list .field-state').innerText !== before",
        arg=before,
        timeout=SOON,
    )
    assert page.locator("#searchbar").input_value() == "berl"
    assert page.evaluate("document.activeElement.id") == "searchbar"
    assert page.locator("input.action-select").first.is_checked()


def test_a_hidden_tab_asks_for_nothing(visit: Visit) -> None:
    watch = Watch(visit.page)
    visit.open("/admin/")
    watch.wait()
    hide = "state => Object.defineProperty(document, 'visibilityState', {value: state, configurable: true})"
    visit.page.evaluate(hide, "hidden")
    assert watch.wait_round() == 0
    visit.page.evaluate(hide, "visible")
    watch.wait()


def test_a_click_stops_and_starts_it_and_is_remembered(visit: Visit) -> None:
    page, watch = visit.page, Watch(visit.page)
    visit.open("/admin/")
    button = page.get_by_role("button", name="Live")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert watch.wait_round() == 0
    visit.open("/admin/pools/cluster/")
    assert button.get_attribute("aria-pressed") == "false"
    assert watch.wait_round() == 0
    button.click()
    watch.wait()
    assert button.get_attribute("aria-pressed") == "true"


def test_a_map_that_has_renewed_itself_has_arrow_keys(visit: Visit) -> None:
    page, watch = visit.page, Watch(visit.page)
    pool = factories.pool("10.202.0.0/28", within=Cluster.objects.get(name=demo.BERLIN), name="map")
    visit.open(f"/admin/pools/pool/{pool.pk}/#map")
    factories.take(pool)
    page.locator(".cad-map .m-held").first.wait_for(timeout=SOON)
    watch.wait()
    assert page.locator(".cad-map > [tabindex='0']").count() == 1
