"""Several pools or environments are edited on one page: preview, all or nothing, filters kept."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import Environment, Event, Pool
from pools.platform.admin import bulk_edit
from tests import factories, people

LIST = reverse("admin:pools_pool_changelist")
DAY = {"change_cooldown_seconds": "on", "cooldown_seconds": "1 day", "reason": "new policy"}


def _pools() -> list[Pool]:
    cluster = factories.cluster()
    return [factories.pool(f"10.{n}.0.0/24", name=f"p{n}", within=cluster) for n in range(3)]


def _choose(browser: Any, rows: list[Any], query: str = "?q=p") -> str:
    """The page to which the action of the list leads."""
    data = {"action": "bulk_edit", "_selected_action": [row.pk for row in rows]}
    answer = browser.post(f"{LIST}{query}", data)
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def _confirm(browser: Any, url: str, data: dict[str, Any]) -> Any:
    preview = browser.post(url, data)
    return browser.post(url, data | {"_confirmed": preview.context["agreed"]})


@pytest.mark.exhaustive
def test_a_preview_and_then_all_rows_with_one_reason() -> None:
    rows = _pools()
    browser = people.browser()
    url = _choose(browser, rows[:2])
    preview = browser.post(url, DAY)
    changes = [row.changes for row in preview.context["previews"]]
    assert changes == [[("Cooldown", "0", "1 day")]] * 2
    assert not Pool.objects.exclude(cooldown_seconds=0).exists()
    answer = browser.post(url, DAY | {"_confirmed": preview.context["agreed"]}, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?q=p", 302)]
    assert "2 rows were changed." in answer.content.decode()
    assert set(Pool.objects.filter(cooldown_seconds=86400)) == set(rows[:2])
    events = Event.objects.filter(type="pool.changed")
    assert list(events.values_list("reason", flat=True)) == ["new policy"] * 2


@pytest.mark.exhaustive
def test_a_field_is_changed_if_it_is_filled_in_and_emptied_if_it_is_ticked() -> None:
    rows = _pools()
    Pool.objects.update(description="old", owner="net")
    browser = people.browser()
    data = {"cooldown_seconds": " ", "change_description": "on", "description": "", "reason": "x"}
    data["add_tags"] = "edge"
    assert _confirm(browser, _choose(browser, rows), data).status_code == 302
    assert list(Pool.objects.values_list("description", "cooldown_seconds", "owner", "tags")) == [
        ("", 0, "net", ["edge"])
    ] * len(rows)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        ({"reason": "x"}, "__all__", "Fill in or tick"),
        ({"change_cooldown_seconds": "on", "reason": "x"}, "cooldown_seconds", "Enter a value"),
        ({**DAY, "cooldown_seconds": "soon"}, "cooldown_seconds", "24 hours"),
        ({"cooldown_seconds": "soon", "reason": "x"}, "cooldown_seconds", "24 hours"),
        ({**DAY, "reason": ""}, "reason", "required"),
    ],
)
def test_an_error_stands_beside_its_field(data: dict[str, str], field: str, says: str) -> None:
    browser = people.browser()
    answer = browser.post(_choose(browser, _pools()), data)
    assert says in str(answer.context["form"].errors[field])
    assert not answer.context["agreed"]


@pytest.mark.exhaustive
def test_one_refusal_stops_all() -> None:
    pool = factories.pool("10.0.0.0/24")
    instances = factories.pool("fd00::/64", category="instance", name="machines")
    browser = people.browser()
    data = {"change_cooldown_seconds": "on", "cooldown_seconds": "10 minutes", "reason": "x"}
    url = _choose(browser, [pool, instances], query="")
    preview = browser.post(url, data)
    first, second = preview.context["previews"]
    assert (first.refusals, second.row) == ([], instances)
    assert "at least 1 hour" in second.refusals[0]
    assert "1 row cannot be changed" in preview.content.decode()
    assert browser.post(url, data | {"_confirmed": ""}).status_code == 200
    assert browser.post(url, data | {"_confirmed": "x"}).status_code == 200
    pool.refresh_from_db()
    assert pool.cooldown_seconds == 0


@pytest.mark.exhaustive
def test_a_preview_that_is_out_of_date_is_shown_again() -> None:
    rows = _pools()
    browser = people.browser()
    url = _choose(browser, rows)
    preview = browser.post(url, DAY)
    Pool.objects.filter(pk=rows[0].pk).update(cooldown_seconds=60)
    answer = browser.post(url, DAY | {"_confirmed": preview.context["agreed"]})
    assert "out of date" in answer.content.decode()
    assert not Pool.objects.filter(cooldown_seconds=86400).exists()
    again = DAY | {"_confirmed": answer.context["agreed"]}
    assert browser.post(url, again).status_code == 302


def test_the_number_of_rows_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_edit, "MOST", 2)
    rows = _pools()
    url = reverse("admin:pools_pool_bulk_edit", query={"id": [row.pk for row in rows]})
    assert people.browser().get(url).context["rows"] == rows[:2]
    nothing = people.browser().get(reverse("admin:pools_pool_bulk_edit"), follow=True)
    assert "None of the selected rows" in nothing.content.decode()


def test_environments() -> None:
    cluster = factories.cluster()
    rows = [Environment.objects.create(cluster=cluster, env=f"e{n}") for n in range(2)]
    url = reverse("admin:pools_environment_bulk_edit", query={"id": [row.pk for row in rows]})
    data = {"change_description": "on", "description": "Shop", "reason": "tidy"}
    assert _confirm(people.browser(), url, data).status_code == 302
    assert set(Environment.objects.values_list("description", flat=True)) == {"Shop"}
