"""Environments of one name in two organisations, through REST: each has its own address."""

from typing import Any

import pytest

from tests.edges import api as apis

pytestmark = pytest.mark.django_db
PROD = apis.holder("prod", "env")


def _public(api: apis.Api, cidr: str) -> str:
    part = {"mask_size": 32, "cidrs": [{"cidr": cidr}]}
    body = {"cluster": "prod", "name": "public", "category": "ipv4", "ipv4": part}
    return f"pools/{api.create('pools/', body)['id']}/allocations/"


def _taken(answer: Any) -> tuple[int, str, str]:
    (block,) = answer.json()["blocks"]
    return answer.status_code, block["cidr"], block["org"]


def test_each_has_one(api: apis.Api) -> None:
    place = _public(api, "203.0.113.0/29")
    for status in (201, 200):  # asked twice, each keeps what it has
        answers = [_taken(api("POST", place, PROD | {"org": org})) for org in ("acme", "globex")]
        assert answers == [(status, "203.0.113.1/32", "acme"), (status, "203.0.113.2/32", "globex")]
    rows = api("GET", "blocks/?holder_id=prod&org=globex").json()["results"]
    assert [block["cidr"] for block in rows] == ["203.0.113.2/32"]
    assert len(api("GET", "environments/?env=prod").json()["results"]) == 2


def test_a_release_may_say_the_organisation(api: apis.Api) -> None:
    place = _public(api, "203.0.113.1/32")
    (block,) = api.create(place, PROD | {"org": "globex"})["blocks"]
    release = f"blocks/{block['id']}/release/"
    apis.refused(api("POST", release, PROD | {"org": "acme"}), 409, "holder_changed")
    apis.refused(api("POST", release, PROD | {"org": 7}), 400, "wrong_type")
    assert api("GET", f"blocks/{block['id']}/").json()["state"] == "held"
    for _ in range(2):
        assert api("POST", release, PROD | {"org": "globex"}).json()["state"] == "cooling"
