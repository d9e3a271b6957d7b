"""Times of pages: in the zone of the user or the browser, absolute where a point in time is asked for; periods as typed."""

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pools.core import errors
from pools.models import Event, Preferences
from pools.platform import database
from tests import factories, people
from tests.claims import worlds

DAY = 86400
URL = "/admin/history/"


@pytest.fixture
def fleet(clock: Any) -> dict[str, Any]:
    """`a` had the address for ten days until two days ago; `b` has it now."""
    pool = factories.pool("10.0.0.0/30", name="blue", cooldown=3600)
    block = factories.take(pool, factories.holder("a"), cidr="10.0.0.1/32")
    since = database.now()
    clock.advance(10 * DAY)
    factories.give_back(block)
    clock.advance(DAY)
    factories.take(pool, factories.holder("b"), cidr="10.0.0.1/32")
    clock.advance(DAY)
    return {"pool": pool, "since": since}


@pytest.fixture
def browser() -> Client:
    return people.browser(people.VIEWER)


def holders(page: Any) -> list[str]:
    return [tenure.holder["id"] for tenure in page.context["then"]]


def test_a_day_alone_is_the_whole_day(fleet: dict[str, Any], browser: Client) -> None:
    day = f"{fleet['since']:%Y-%m-%d}"
    page = browser.get(URL, {"q": "10.0.0.1", "at": day})
    assert holders(page) == ["a"]
    assert {line.event.type for line in page.context["lines"]} == {
        "block.allocated", "pool.cidr_added",
    }  # fmt: skip
    german = f"{fleet['since']:%d.%m.%Y}"
    assert holders(browser.get(URL, {"q": "10.0.0.1", "at": german})) == ["a"]
    by_name = browser.get(URL, {"q": "a", "at": day})
    assert holders(by_name) == ["a"]


def test_a_period_has_who_held_it_in_between(fleet: dict[str, Any], browser: Client) -> None:
    assert holders(browser.get(URL, {"q": "10.0.0.1", "at": "24 h"})) == ["b"]
    states = [(tenure.holder["id"], tenure.state) for tenure in
              browser.get(URL, {"q": "10.0.0.1", "at": "7 d"}).context["then"]]  # fmt: skip
    assert states == [("b", "held"), ("a", "cooling"), ("a", "held")]
    assert holders(browser.get(URL, {"q": "10.0.0.1", "at": "11 d ago"})) == ["a"]
    picked = f"{fleet['since']:%Y-%m-%dT23:59}"  # of the picker, where no script runs
    assert holders(browser.get(URL, {"q": "10.0.0.1", "at": "", "at_picked": picked})) == ["a"]


def test_last_week_is_a_link_of_the_address(fleet: dict[str, Any], browser: Client) -> None:
    page = browser.get(reverse("admin:find"), {"q": "10.0.0.1"}).text
    assert f'href="{URL}?q=10.0.0.1&amp;at=last%20week"' in page
    answer = browser.get(f"{URL}?q=10.0.0.1&at=last%20week")
    assert "a" in holders(answer)
    assert "From" in answer.text


def test_an_answer_about_a_time_has_no_ages(fleet: dict[str, Any], browser: Client) -> None:
    page = browser.get(URL, {"q": "10.0.0.1", "at": "5 d ago"}).text
    shown = page[page.index('id="content"') :]
    assert f">{fleet['since']:%Y-%m-%d %H:%M:%S} UTC</time>" in shown
    assert " ago</time>" not in shown


def test_an_error_is_at_the_field_and_the_answer_is_kept(
    fleet: dict[str, Any], browser: Client
) -> None:
    page = browser.get(URL, {"q": "10.0.0.1", "at": "half past noon"})
    assert 'value="half past noon"' in page.text
    assert 'value="10.0.0.1"' in page.text
    assert "at" in page.context["form"].errors
    url = reverse("admin:history_pool", args=[fleet["pool"].pk])
    page = browser.get(url, {"at": "2199-01-01"})
    assert "future" in page.context["form"].errors["at"][0]


def test_the_event_of_a_changed_row_names_what_it_refers_to(browser: Client) -> None:
    network = worlds.network()
    event = Event.objects.filter(type="network.created").latest("pk")
    page = people.browser().get(reverse("admin:pools_event_change", args=[event.pk])).text
    assert f">{network.cluster}</a>" in page[page.index("<h2>") :]
    assert "<ins>" not in page  # nothing changed, it began


def test_a_refused_allocation_has_no_values_in_green(browser: Client) -> None:
    pool = factories.pool("10.0.0.0/32")
    factories.take(pool)
    with pytest.raises(errors.PoolExhausted):
        factories.take(pool, factories.holder("late"))
    event = Event.objects.filter(type__endswith="failed").latest("pk")
    page = browser.get(reverse("admin:pools_event_change", args=[event.pk])).text
    assert "cad-bad" in page
    assert "<ins>" not in page
    assert ">late</a>" in page


# --- time zones -----------------------------------------------------------------------------------


def choose(browser: Client, zone: str) -> None:
    Preferences.objects.update_or_create(
        user_id=browser.session["_auth_user_id"], defaults={"time_zone": zone}
    )


def shown_zone(browser: Client) -> str:
    page = browser.get(URL).text
    return page[page.index("Time (") :].partition("(")[2].partition(")")[0]


def test_the_zone_is_that_of_the_user_else_of_the_browser_else_utc(browser: Client) -> None:
    assert shown_zone(browser) == "UTC"
    browser.cookies["time_zone"] = "Asia/Tokyo"
    assert shown_zone(browser) == "Asia/Tokyo"
    choose(browser, "Europe/Berlin")
    assert shown_zone(browser) == "Europe/Berlin"
    choose(browser, "")
    for wrong in ("../../etc/passwd", "Nowhere/Land", "x" * 5000, ""):
        browser.cookies["time_zone"] = wrong
        assert shown_zone(browser) == "UTC"


def test_a_day_is_one_of_the_users_zone(fleet: dict[str, Any], browser: Client) -> None:
    choose(browser, "Pacific/Kiritimati")  # 14 hours before UTC
    period = browser.get(URL, {"q": "10.0.0.1", "at": "yesterday"}).context["query"].period
    assert (period.end - period.start).total_seconds() == DAY
    assert (period.start.hour, f"{period.start:%z}") == (0, "+1400")
    moment = browser.get(URL, {"at": "2026-01-02 03:04"}).context["query"].period.start
    assert moment == datetime.fromisoformat("2026-01-02T03:04+14:00")


def test_exports_and_rest_stay_in_utc(fleet: dict[str, Any], browser: Client) -> None:
    choose(browser, "Asia/Tokyo")
    text = b"".join(browser.get(URL, {"q": "a", "format": "csv"}).streaming_content).decode()
    assert f"{fleet['since']:%Y-%m-%dT%H:%M:%S}" in text
    assert "+09:00" not in text
    exported = browser.get(reverse("admin:pools_event_export"))
    events = b"".join(exported.streaming_content).decode()
    assert f"{fleet['since']:%Y-%m-%d %H:%M:%S}" in events
    assert "+09:00" not in events
    assert "+09:00" not in browser.get("/api/v1/history/?q=a").text
