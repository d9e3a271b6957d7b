"""blocks/{id}/release/ is a compare-and-set; forced ones and ended cooldowns need a right and a reason."""

from typing import Any

import pytest

from tests.edges import api as apis

pytestmark = pytest.mark.django_db


def _release(api: apis.Api, block: dict[str, Any], name: str, **more: Any) -> Any:
    return api("POST", f"blocks/{block['id']}/release/", apis.holder(name) | more)


def test_a_cooldown_begins(api: apis.Api) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29", cooldown=600), "a")
    released = _release(api, block, "a")
    assert released.status_code == 200
    document = released.json()
    assert (document["id"], document["cidr"], document["state"]) == (
        block["id"],
        block["cidr"],
        "cooling",
    )
    assert document["cooldown_until"] > document["released_at"] >= block["allocated_at"]


@pytest.mark.parametrize("cooldown", [0, 600])
def test_a_repeated_release_changes_nothing(api: apis.Api, cooldown: int) -> None:
    block = api.take(api.vm_pool("10.0.0.0/29", cooldown=cooldown), "a")
    first = _release(api, block, "a")
    events = api("GET", "events/").json()["results"]
    second = _release(api, block, "a")
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert api("GET", "events/").json()["results"] == events
