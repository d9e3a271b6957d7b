"""The bad-input catalogue through REST: the same codes as everywhere, and nothing half done."""

import json
from typing import Any

import pytest

from pools.models import Cluster, Pool
from tests.core import catalogue
from tests.edges.api import Api


def _pool(cidr: Any, **more: Any) -> dict[str, Any]:
    family = "ipv6" if isinstance(cidr, str) and ":" in cidr else "ipv4"
    # The mask size of the value itself, where it can be read, so that only the CIDR is in question.
    length = 128 if family == "ipv6" else 32
    part = {"mask_size": length, "cidrs": [{"cidr": cidr, **more}]}
    return {"cluster": "prod", "name": "p", "category": "vm", family: part}


def _cidr(case: catalogue.Case) -> tuple[str, str, Any]:
    return "POST", "pools/", _pool(case.value)


def _range(case: catalogue.Case) -> tuple[str, str, Any]:
    is_v6 = ":" in str(case.value)[:20].replace("::ffff:", "")  # a mapped address is an IPv4 one
    within = case.within or ("fd00::/16" if is_v6 else "10.0.0.0/8")
    return "POST", "pools/", _pool(str(within), reserved_ranges=[case.value])


def _address(case: catalogue.Case) -> tuple[str, str, Any]:
    return "PATCH", "clusters/prod/", {"instance_gateway": case.value}


def _cooldown(case: catalogue.Case) -> tuple[str, str, Any]:
    return "POST", "pools/", _pool("10.0.0.0/24") | {"cooldown_seconds": case.value}


def _name(case: catalogue.Case) -> tuple[str, str, Any]:
    return "POST", "clusters/", {"name": case.value}


def _mask_size(case: catalogue.Case) -> tuple[str, str, Any]:
    prefix = (
        case.within
        if isinstance(case.within, str)
        else {4: "10.0.0.0/8", 6: "fd00::/16"}[case.within or 4]
    )
    body = _pool(prefix)
    body["ipv6" if ":" in prefix else "ipv4"]["mask_size"] = case.value
    return "POST", "pools/", body


def _identifier(case: catalogue.Case) -> tuple[str, str, Any]:
    pool = Pool.objects.get(category="instance").pk
    return "POST", f"pools/{pool}/allocations/", {"holder": {"kind": "instance", "id": case.value}}


MAKERS = {
    "cidr": _cidr,
    "range": _range,
    "address": _address,
    "cooldown": _cooldown,
    "name": _name,
    "mask_size": _mask_size,
    "identifier": _identifier,
}


@pytest.mark.sample(168)
@pytest.mark.parametrize("case", catalogue.params(door="api", kinds=tuple(MAKERS)))
def test_the_answer_is_the_catalogues(case: catalogue.Case) -> None:
    api = Api()
    api("POST", "clusters/", {"name": "prod", "cluster_prefix": "2001:db8:10::/48"})
    before = (Pool.objects.count(), Cluster.objects.count())
    method, path, body = MAKERS[case.kind](case)
    answer = api(method, path, json.dumps(body))
    assert answer.status_code < 500
    if "code" not in case.expect:
        # What may be in question elsewhere in the body is not what this row is about.
        assert answer.status_code in {200, 201} or answer.json()["code"] in {
            "mask_size",
            "cidr_overlap",
        }
        return
    assert answer.headers["Content-Type"] == "application/problem+json"
    codes = {error["code"] for error in answer.json()["errors"]} | {answer.json()["code"]}
    assert case.expect["code"] in codes
    assert (Pool.objects.count(), Cluster.objects.count()) == before
