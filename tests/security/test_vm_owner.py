"""Rule `vm-owner-asks-for-own-vms`."""

from typing import Any

import pytest

from tests.security.target import Target

ENTRY = {"mac": "02:aa:00:00:00:01", "ips": ["10.77.0.5/24"], "vm": "web", "namespace": "alpha"}


@pytest.fixture(scope="module")
def place(target: Target) -> str:
    """The entries of a network of the namespace alpha."""
    network: dict[str, Any] = {
        "cluster": "prod", "name": "alpha_s08", "namespace": "alpha", "kind": "udn",
        "topology": "layer2", "role": "primary", "lifecycle": "Persistent",
        "subnets": ["10.77.0.0/24"],
    }  # fmt: skip
    assert target.rest("POST", "networks/", network).status == 201
    body = {"cluster": "prod", "name": "s08", "network_name": "alpha_s08"}
    return f"ippools/{target.rest('POST', 'ippools/', body).json()['id']}/entries/"


def test_namespaces_of_others_are_like_those_that_there_are_not(target: Target, place: str) -> None:
    replies = [
        target.rest("POST", place, ENTRY | {"namespace": name}, "vera")
        for name in ("beta", "gamma")
    ]
    assert [answer.status for answer in replies] == [403, 403]
    first, second = (answer.json() | {"request_id": ""} for answer in replies)
    assert first == second


def test_nothing_is_set_that_others_decide(target: Target, place: str) -> None:
    for name, value in (("source", "manual"), ("id", 1), ("ippool", 1), ("is_superuser", True)):
        assert target.rest("POST", place, ENTRY | {name: value}, "vera").status == 400, name
    created = target.rest("POST", place, ENTRY, "vera")
    assert (created.status, created.json()["source"]) == (201, "request")
    entry_path = f"{place}{created.json()['id']}/"
    assert target.rest("PATCH", entry_path, {"mac": "02:aa:00:00:00:02"}, "vera").status == 403
    assert target.rest("PUT", place, {"entries": []}, "vera").status == 403
    answer = target.rest("POST", place, ENTRY | {"mac": "02:aa:00:00:00:03", "vm": "x"}, "vera")
    assert answer.status in {201, 409}  # of one's own VMs; never of others
    for method, path, body in (
        ("PATCH", "clusters/prod/", {"description": "x"}),
        ("POST", "pools/", {}),
        ("POST", "memberships/", {"user": "vera", "cluster": "prod", "namespaces": ["beta"]}),
        ("PATCH", place.removesuffix("entries/"), {"note": "x"}),
        ("POST", "leaks/reclaim/", {}),
    ):
        assert target.rest(method, path, body, "vera").status == 403, path
