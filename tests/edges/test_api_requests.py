"""requests/ and environments/: who waits for space, and which environment lacks it."""

from typing import Any

import pytest

from pools.register.allocator import requests
from tests.edges import api as apis


@pytest.fixture
def full(api: apis.Api) -> int:
    """A pool of one address, which the VM `first` holds."""
    pool = api.vm_pool("10.0.0.1/32")
    api.take(pool, "first", org="o", env="e-1")
    return pool


def _wait(api: apis.Api, pool: int, name: str = "late", **more: Any) -> Any:
    body = apis.holder(name) | {"org": "o", "env": "e-2", "wait": True} | more
    return api("POST", f"pools/{pool}/allocations/", body)


def _give_back(api: apis.Api) -> None:
    (block,) = api("GET", "blocks/?holder_id=first").json()["results"]
    assert api("POST", f"blocks/{block['id']}/release/", apis.holder("first")).status_code == 200


def test_one_who_waits_gets_a_place_to_look(api: apis.Api, full: int) -> None:
    answer = _wait(api, full)
    assert answer.status_code == 202
    document = answer.json()
    assert answer.headers["Location"] == f"{apis.ROOT}requests/{document['id']}/"
    assert (document["state"], document["pool"], document["cluster"]) == ("pending", "vms", "prod")
    assert document["holder"] == {"kind": "vm", "id": "late"}
    assert api.client.get(answer.headers["Location"]).json() == document
    assert api("GET", "requests/?state=pending&env=e-2").json()["results"] == [document]


def test_a_cancelled_request_is_not_served(api: apis.Api, full: int) -> None:
    location = _wait(api, full).headers["Location"]
    cancelled = api.client.delete(location)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert api.client.delete(location).json() == cancelled.json()
    _give_back(api)
    assert requests.retry(full) == 0
    assert api("GET", "blocks/?holder_id=late").json()["results"] == []
