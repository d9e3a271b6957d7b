"""PATCH of a pool: what is there twice, nulls, and preconditions (RFC 9110, 13.1.1)."""

from __future__ import annotations

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


MATCHES = [
    ("{}", 200), ("*", 200), ('"0", {}', 200), ('{}, "0"', 200), (', {} ,, W/"x"', 200),
    ('"a,b", {}', 200), ("W/{}", 412), ('"0"', 412), ('"0", "9"', 412), ('"word"', 412),
    ('W/{}, "0"', 412), ('""', 412), ('"' + "9" * 30 + '"', 412), ("5", 400), ('"1" "2"', 400), ('*, "1"', 400), ('"1', 400), (",", 400),
]  # fmt: skip


@pytest.mark.sample(18)
@pytest.mark.parametrize(("header", "status"), MATCHES)
def test_if_match(api: Api, pool: dict[str, Any], header: str, status: int) -> None:
    value = header.replace("{}", f'"{pool["version"]}"')
    answer = api("PATCH", f"pools/{pool['id']}/", {"description": "x"}, If_Match=value)
    assert answer.status_code == status, answer.content
