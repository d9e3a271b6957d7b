"""Parts of pages that renew themselves: only they are answered, and only if they changed."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import CIDRMigration, Pool
from tests import factories, people

ASKED = {"HX-Trigger": "cad-live", "HX-Request": "true"}


@pytest.fixture
def pool() -> Pool:
    return factories.pool("10.20.0.0/28", cooldown=0)


def _ask(browser: Any, url: str, tag: str = "") -> Any:
    return browser.get(url, headers=ASKED | ({"If-None-Match": tag} if tag else {}))


def test_the_parts_alone_are_answered(pool: Pool) -> None:
    browser = people.browser()
    url = reverse("admin:pools_pool_change", args=[pool.pk])
    page = browser.get(url).content.decode()
    assert 'id="live-maps" data-live=""' in page
    assert "hx-swap-oob" not in page
    parts = _ask(browser, url).content.decode()
    assert parts.startswith("<div")
    assert '<div id="live-maps" hx-swap-oob="innerHTML">' in parts
    assert "csrfmiddlewaretoken" not in parts


def test_nothing_is_sent_until_something_changed(pool: Pool) -> None:
    browser = people.browser()
    url = reverse("admin:pools_pool_change", args=[pool.pk])
    first = _ask(browser, url)
    again = _ask(browser, url, first["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    factories.take(pool)
    changed = _ask(browser, url, first["ETag"])
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_steps_of_a_migration_that_drains_have_no_form(pool: Pool) -> None:
    browser = people.browser()
    factories.take(pool)
    browser.post(
        reverse("admin:pools_pool_migrations", args=[pool.pk]),
        {"cidr": "10.20.0.0/28", "_begin": "1"},
    )
    url = reverse("admin:pools_pool_migration", args=[pool.pk, CIDRMigration.objects.get().pk])
    browser.post(url, {"step": "reserve"})
    first = _ask(browser, url)
    assert "0 of 1 block released" in first.content.decode()
    assert _ask(browser, url, first["ETag"]).status_code == 304
    assert "Reserved: no new blocks" in browser.get(url).content.decode(), "no message is lost"


def test_a_page_without_parts_asks_for_the_frame(pool: Pool) -> None:
    browser = people.browser()
    parts = _ask(browser, reverse("admin:live")).content.decode()
    assert parts.startswith('<div id="live-notifications"')
    assert parts.count("live-") == 1


def test_who_has_no_live_part_is_answered_with_none(pool: Pool) -> None:
    answer = _ask(people.browser(()), reverse("admin:live"))
    assert (answer.status_code, answer.content) == (200, b"")
