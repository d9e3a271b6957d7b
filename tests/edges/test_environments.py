"""Environments are declared, described and removed, over REST and in the admin alike."""

from typing import Any

import pytest
from django.urls import reverse

from pools.models import Environment, Event
from pools.register.allocator import requests
from tests import factories, people
from tests.edges import api as apis

BODY = {"cluster": "prod", "org": "acme", "env": "shop", "description": "Web shop"}


def _hold(env: str = "shop") -> tuple[dict[str, Any], Any]:
    """A block of the environment, and a request that waits for another."""
    pool = factories.pool("10.0.0.1/32", within=Environment.objects.get().cluster)
    block = factories.take(pool, factories.holder("web-1"), org="acme", env=env)
    demand = factories.demand(factories.holder("web-2"), org="acme", env=env)
    return dict(block), requests.allocate(pool.pk, demand, author=factories.BY, wait=True)


def test_an_environment_is_declared_before_its_first_allocation(api: apis.Api) -> None:
    created = api.create("environments/", BODY)
    assert {name: created[name] for name in BODY} == BODY
    assert (created["status"], created["declared_at"] is not None) == ("ok", True)
    (event,) = Event.objects.filter(env="shop")
    assert (event.type, event.org, event.actor) == (
        "environment.created", "acme", api.user.username,
    )  # fmt: skip
    block, _request = _hold()
    assert block["env"] == "shop"
    environment = Environment.objects.get()
    assert (environment.pk, environment.description) == (created["id"], "Web shop")
    assert environment.degraded  # of the refused request
    assert api("GET", f"environments/{created['id']}/").json()["status"] == "degraded"


def test_it_is_declared_once(api: apis.Api) -> None:
    first = api("POST", "environments/", BODY, Idempotency_Key="a").json()
    assert api("POST", "environments/", BODY, Idempotency_Key="a").json() == first
    apis.refused(api("POST", "environments/", BODY), 409, "already_exists")
    assert api.create("environments/", BODY | {"org": "globex"})["id"] != first["id"]


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"env": "a\u200bb"}, "env", "invisible_character"),
        ({"description": "x" * 501}, "description", "too_long"),
    ],
)
def test_bad_input_is_refused(api: apis.Api, body: Any, field: str, code: str) -> None:
    problem = apis.refused(api("POST", "environments/", BODY | body), 400, code)
    assert apis.fields(problem) == {field: code}
    assert not Environment.objects.exists()


def test_the_description_is_changed(api: apis.Api) -> None:
    path = f"environments/{api.create('environments/', BODY)['id']}/"
    assert api("PATCH", path, {"description": "Shop"}).json()["description"] == "Shop"
    assert api("PATCH", path, {"description": "Shop"}).status_code == 200
    assert Event.objects.filter(type="environment.changed").count() == 1
    apis.refused(api("PATCH", "environments/999/", {"description": "x"}), 404, "not_found")


def test_one_that_holds_something_stays(api: apis.Api) -> None:
    path = f"environments/{api.create('environments/', BODY)['id']}/"
    block, request = _hold()
    problem = apis.refused(api("DELETE", path), 409, "environment_in_use")
    assert "1 held block (10.0.0.1/32 of vm web-1)" in problem["detail"]
    assert f"1 pending request ({request.pk} for vm web-2)" in problem["detail"]
    requests.cancel(request.pk, author=factories.BY)
    factories.give_back(block)  # type: ignore[arg-type]
    assert api("DELETE", path).status_code == 204
    assert not Environment.objects.exists()
    assert Event.objects.filter(type="environment.deleted", env="shop").exists()
    factories.take(factories.pool("10.9.0.0/30"), org="acme", env="shop")
    assert Environment.objects.get().declared_at is None


def test_in_the_admin() -> None:
    cluster = factories.cluster()
    browser = people.browser()
    add = reverse("admin:pools_environment_add")
    assert add in browser.get(reverse("admin:pools_environment_changelist")).content.decode()
    data = {"cluster": cluster.pk, "org": "acme", "env": "shop", "description": "Web shop"}
    wrong = browser.post(add, data | {"env": " \u202e"})
    assert "U+202E" in wrong.content.decode()
    assert "Web shop" in wrong.content.decode()
    answer = browser.post(add, data)
    environment = Environment.objects.get()
    page = reverse("admin:pools_environment_change", args=[environment.pk])
    assert answer["Location"] == page
    assert "Web shop" in browser.get(page).content.decode()
    assert "acme/shop" in str(browser.post(add, data).context["form"].errors["env"])
    browser.post(
        reverse("admin:pools_environment_edit", args=[environment.pk]), {"description": ""}
    )
    environment.refresh_from_db()
    assert environment.description == ""
    _hold()
    delete = reverse("admin:pools_environment_delete", args=[environment.pk])
    assert "appears again" in browser.get(delete).content.decode()
    refused = browser.post(delete, follow=True)
    assert refused.redirect_chain[-1][0] == page
    assert "10.0.0.1/32 of vm web-1" in refused.content.decode()
