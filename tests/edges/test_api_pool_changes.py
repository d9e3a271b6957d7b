"""PATCH of a pool: what is there twice, nulls, and preconditions (RFC 9110, 13.1.1)."""

from typing import Any

import pytest

from tests.edges.api import Api

pytestmark = pytest.mark.django_db
CIDR = "10.20.0.0/24"


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def pool(api: Api) -> dict[str, Any]:
    api.cluster()
    part = {"mask_size": 28, "cidrs": [CIDR]}
    body = {"cluster": "prod", "name": "blue", "category": "pod", "ipv4": part}
    document: dict[str, Any] = api.create("pools/", body)
    return document


def test_a_cidr_or_a_range_twice(api: Api, pool: dict[str, Any]) -> None:
    twice = {"ipv4": {"mask_size": 28, "cidrs": [CIDR, CIDR]}}
    answer = api("PATCH", f"pools/{pool['id']}/", twice)
    assert (answer.status_code, answer.json()["code"]) == (409, "cidr_overlap")
    span = "10.20.0.0-10.20.0.15"
    ranges = {"mask_size": 28, "cidrs": [{"cidr": CIDR, "reserved_ranges": [span, span]}]}
    answer = api("PATCH", f"pools/{pool['id']}/", {"ipv4": ranges})
    assert (answer.status_code, answer.json()["code"]) == (409, "ranges_overlap")
