"""The guide through the migration of a CIDR, without a line of JavaScript."""

import html
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from pools.models import CIDRMigration, Connection, Event, Now, Pool
from tests import factories, people

OLD, NEW = "10.20.0.0/28", "10.30.0.0/28"


@pytest.fixture
def pool() -> Pool:
    return factories.pool(OLD, cooldown=0)


def _begin(browser: Any, pool: Pool, **fields: str) -> Any:
    url = reverse("admin:pools_pool_migrations", args=[pool.pk])
    return browser.post(url, {"cidr": OLD, "to": NEW, **fields}, follow=True)


def _text(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def _name(browser: Any) -> str:
    return str(get_user_model().objects.get(pk=browser.session["_auth_user_id"]).username)


def _take(browser: Any, step: str) -> str:
    row = CIDRMigration.objects.get()
    url = reverse("admin:pools_pool_migration", args=[row.pool_id, row.pk])
    return _text(browser.post(url, {"step": step}, follow=True))


@pytest.mark.exhaustive
def test_the_whole_way(pool: Pool) -> None:
    browser = people.browser()
    block = factories.take(pool, factories.holder("vm-1"))
    page_text = _text(_begin(browser, pool))
    assert "1 block must be released." in page_text
    assert "10.30.0.0/28 adds 14 blocks" in page_text
    assert not CIDRMigration.objects.exists()
    page_text = _text(_begin(browser, pool, _begin="1", reason="the site moves"))
    assert f"Migration of {OLD}" in page_text
    assert "vm-1" in page_text
    _take(browser, "reserve")
    page_text = _take(browser, "add")
    assert 'value="0" max="1"' in page_text
    assert "0 of 1 block released" in page_text
    assert "has 1 held or cooling block: vm vm-1" in _take(browser, "remove")
    factories.give_back(block)
    assert "10.20.0.0/28 was removed." in _take(browser, "remove")
    assert [str(cidr) for cidr in pool.cidrs.all()] == [NEW]
    author = Event.objects.filter(pool_id=pool.pk, table="poolcidrevent").values_list("actor", flat=True)  # fmt: skip
    assert {actor for actor in author if actor != "tester"} == {_name(browser)}


@pytest.mark.exhaustive
def test_what_cannot_be_is_beside_its_field(pool: Pool) -> None:
    page_text = _text(_begin(people.browser(), pool, range="10.21.0.0/28"))
    assert "is not wholly inside 10.20.0.0/28" in page_text
    page_text = _text(_begin(people.browser(), pool, to="10.30.0.0/31"))
    assert "This migration cannot finish as planned" not in page_text
    factories.drain(pool)
    page_text = _text(_begin(people.browser(), pool, to="10.30.0.0/31"))
    assert "This migration cannot finish as planned" in page_text


def test_the_pool_leads_to_an_open_migration(pool: Pool) -> None:
    browser = people.browser()
    page = _text(browser.get(reverse("admin:pools_pool_change", args=[pool.pk])))
    url = reverse("admin:pools_pool_migrations", args=[pool.pk])
    assert f'href="{url}?cidr=10.20.0.0%2F28"' in page
    assert browser.get(url, {"cidr": OLD}).status_code == 200
    _begin(browser, pool, _begin="1")
    row = CIDRMigration.objects.get()
    answer = browser.get(url, {"cidr": OLD})
    assert answer.headers["Location"] == reverse("admin:pools_pool_migration", args=[pool.pk, row.pk])  # fmt: skip


@pytest.mark.exhaustive
def test_abort(pool: Pool) -> None:
    browser = people.browser()
    _begin(browser, pool, _begin="1")
    _take(browser, "reserve")
    assert "Cancel the migration of" in _take(browser, "abort")
    row = CIDRMigration.objects.get()
    url = reverse("admin:pools_pool_migration", args=[row.pool_id, row.pk])
    text = _text(browser.post(url, {"step": "abort", "_confirmed": "1"}, follow=True))
    assert "The migration was cancelled and the reservation was removed." in text
    assert not pool.reserved_ranges.exists()


def test_a_pool_that_follows_its_cluster_is_told_what_to_apply() -> None:
    pool = factories.pool(OLD, category="pod", mask=30, follows_cluster=True)
    Connection.objects.create(cluster=pool.cluster, server="https://k.example", sealed="", due_at=Now())  # fmt: skip
    browser = people.browser()
    page_text = _text(_begin(browser, pool, _begin="1"))
    assert "Carry out the steps in the cluster" in page_text
    assert "start: 10.20.0.0" in page_text
    assert "- 10.30.0.0/28" in page_text
    assert 'value="reserve"' not in page_text


@pytest.mark.exhaustive
def test_to_widen_is_shown_first_and_confirmed(pool: Pool) -> None:
    browser = people.browser()
    factories.take(pool, factories.holder("vm-1"))
    _begin(browser, pool, _begin="1", range="10.20.0.0-10.20.0.7")
    _take(browser, "reserve")
    shown = _take(browser, "widen")
    assert "Effect of reserving the whole CIDR" in shown
    assert "10.20.0.8-10.20.0.15" in shown
    assert "1 block must be released." in shown
    assert [str(reserved_range) for reserved_range in pool.reserved_ranges.all()] == [
        "10.20.0.0-10.20.0.7"
    ]
    row = CIDRMigration.objects.get()
    url = reverse("admin:pools_pool_migration", args=[row.pool_id, row.pk])
    done = _text(browser.post(url, {"step": "widen", "_confirmed": "1"}, follow=True))
    assert "The whole CIDR 10.20.0.0/28 is reserved now." in done
    again = _text(browser.post(url, {"step": "widen"}, follow=True))
    assert again.count("The step widen extends a migration from a range to the whole CIDR") == 1
