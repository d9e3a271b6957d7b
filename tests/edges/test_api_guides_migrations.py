"""A CIDR is migrated through REST, step by step."""

from typing import Any

import pytest

from pools.models import Event
from tests.edges import api as apis

OLD, NEW = "10.20.0.0/28", "10.30.0.0/28"


@pytest.fixture
def pool(api: apis.Api) -> int:
    return api.vm_pool(OLD)


def _begin(api: apis.Api, pool: int, **body: Any) -> str:
    body = {"cidr": OLD, "to": NEW, "reason": "the site moves"} | body
    document = api.create(f"pools/{pool}/migrations/", body)
    return f"pools/{pool}/migrations/{document['id']}/"


def _step(api: apis.Api, place: str, step: str, **more: Any) -> Any:
    return api("POST", f"{place}steps/", {"step": step, **more})


def test_the_whole_way(api: apis.Api, pool: int) -> None:
    block = api.take(pool, "vm-1")
    place = _begin(api, pool)
    answer = api("GET", place).json()
    assert (answer["state"], answer["steps"]) == ("planned", ["add", "reserve", "abort"])
    assert (answer["range"], answer["whole"], answer["by"]) == (
        "10.20.0.0-10.20.0.15",
        True,
        "register",
    )
    assert _step(api, place, "reserve").json()["state"] == "draining"
    answer = _step(api, place, "add").json()
    assert (answer["added"], answer["total"], answer["percent"]) == (True, 1, 0)
    assert [(holder["id"], holder["blocks"]) for holder in answer["holders"]] == [("vm-1", 1)]
    refused = apis.refused(_step(api, place, "remove"), 409, "cidr_in_use")
    assert "vm-1" in refused["detail"]
    api("POST", f"blocks/{block['id']}/release/", apis.holder("vm-1"))
    assert api("GET", place).json()["state"] == "drained"
    answer = _step(api, place, "remove").json()
    assert (answer["state"], answer["steps"]) == ("removed", [])
    cidrs = [row["cidr"] for row in api("GET", f"pools/{pool}/cidrs/").json()["results"]]
    assert cidrs == [NEW]
    (listed,) = api("GET", f"pools/{pool}/migrations/").json()["results"]
    assert listed["reason"] == "the site moves"
    answer = Event.objects.filter(pool_id=pool, actor=api.user.username, reason="the site moves")
    assert answer.filter(table="reservedrangeevent").exists()


def test_a_dry_run_tells_and_changes_nothing(api: apis.Api, pool: int) -> None:
    for number in range(3):
        api.take(pool, f"vm-{number}")
    answer = api("POST", f"pools/{pool}/migrations/?dry_run=true", {"cidr": OLD, "to": "10.30.0.0/31"})  # fmt: skip
    document = answer.json()
    assert (answer.status_code, document["fits"], document["in_use"]) == (200, False, 3)
    room = next(finding for finding in document["findings"] if finding["rule"] == "room")
    assert (room["result"], room["advice"]) == ("violated", "choose a larger replacement CIDR")
    assert api("GET", f"pools/{pool}/migrations/").json()["results"] == []
    assert api("GET", f"pools/{pool}/cidrs/").json()["results"][0]["reserved_ranges"] == []


def test_abort_gives_the_range_back(api: apis.Api, pool: int) -> None:
    place = _begin(api, pool)
    _step(api, place, "reserve")
    assert _step(api, place, "abort", reason="not today").json()["state"] == "aborted"
    assert api("GET", f"pools/{pool}/cidrs/").json()["results"][0]["reserved_ranges"] == []
    apis.refused(_step(api, place, "reserve"), 409, "step_not_due")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"cidr": "10.99.0.0/28"}, {"cidr": "unknown_cidr"}),
        ({"cidr": OLD, "range": "10.21.0.0/28"}, {"range": "range_outside_cidr"}),
        ({"cidr": OLD, "to": "fd00::/120"}, {"to": "mixed_family"}),
        ({"cidr": OLD, "to": OLD}, {"to": "same_cidr"}),
    ],
    ids=["unknown", "range", "family", "same"],
)
def test_a_bad_beginning(
    api: apis.Api, pool: int, body: dict[str, Any], fields: dict[str, str]
) -> None:
    answer = api("POST", f"pools/{pool}/migrations/", body)
    assert answer.status_code == 400
    assert apis.fields(answer.json()) == fields


def test_once_under_a_key(api: apis.Api, pool: int) -> None:
    body = {"cidr": OLD, "to": NEW}
    first, again = (
        api("POST", f"pools/{pool}/migrations/", body, Idempotency_Key="k-1") for _ in range(2)
    )
    assert (first.status_code, again.json()) == (201, first.json())


def test_to_widen_what_is_whole_is_explained(api: apis.Api, pool: int) -> None:
    refused = apis.refused(_step(api, _begin(api, pool), "widen"), 409, "step_not_due")
    assert "extends a migration from a range to the whole CIDR" in refused["detail"]
    assert OLD in refused["detail"]


@pytest.mark.exhaustive
def test_to_widen_says_first_what_it_would_do(api: apis.Api, pool: int) -> None:
    for number in range(3):
        api.take(pool, f"vm-{number}", cidr=f"10.20.0.{3 * number + 3}/32")
    place = _begin(api, pool, range="10.20.0.0-10.20.0.7", to="10.30.0.0/30")
    _step(api, place, "reserve")
    before = api("GET", f"pools/{pool}/cidrs/").json()
    answer = api("POST", f"{place}steps/?dry_run=true", {"step": "widen"})
    document = answer.json()
    assert answer.status_code == 200, document
    assert (document["range"], document["reserves"]) == (
        "10.20.0.0-10.20.0.15",
        ["10.20.0.8-10.20.0.15"],
    )
    assert (document["fits"], document["in_use"], document["free_after"]) == (False, 3, "2")
    assert api("GET", f"pools/{pool}/cidrs/").json() == before
    assert api("GET", place).json()["whole"] is False
    assert _step(api, place, "widen").json()["in_use"] == document["in_use"]
    apis.refused(api("POST", f"{place}steps/?dry_run=true", {"step": "widen"}), 409, "step_not_due")


@pytest.mark.exhaustive
def test_what_has_no_forecast(api: apis.Api, pool: int) -> None:
    place = _begin(api, pool)
    for step in ("add", "remove", "keep", "abort"):
        answer = api("POST", f"{place}steps/?dry_run=true", {"step": step})
        apis.refused(answer, 400, "invalid_choice")
    assert api("POST", f"{place}steps/?dry_run=true", {"step": "reserve"}).json()["fits"]
    assert api("GET", place).json()["state"] == "planned"
    answer = api("POST", f"{place}steps/?dryrun=true", {"step": "reserve"})
    apis.refused(answer, 400, "unknown_parameter")
