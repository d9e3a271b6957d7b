"""What POST pools/{id}/allocations/ refuses, field by field, before anything is allocated."""

from __future__ import annotations

from typing import Any

import pytest

from pools.models import Block
from tests.edges import api as apis

pytestmark = pytest.mark.django_db
A = apis.holder("a")
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing": ({}, {"": "object_expected"}),
    "no holder": ({"count": 1}, {"holder": "required"}),
    "holder is a text": ({"holder": "a"}, {"holder": "wrong_type"}),
    "holder without an id": ({"holder": {"kind": "vm"}}, {"holder.id": "required"}),
    "holder with more": (
        {"holder": {"kind": "vm", "id": "a", "name": "x"}},
        {"holder.name": "unknown_field"},
    ),
    "kind is no label": ({"holder": {"kind": "V M", "id": "a"}}, {"holder.kind": "k8s_name"}),
    "both spellings": (
        A | {"holders": [{"kind": "vm", "id": "b"}]},
        {"holder": "conflicting_fields"},
    ),
    "no holders": ({"holders": []}, {"holders": "wrong_type"}),
    "a holder is null": ({"holders": [None]}, {"holders.0": "wrong_type"}),
    "a holder twice": (
        {"holders": [{"kind": "vm", "id": "b"}] * 2},
        {"holders.1": "duplicate_holder"},
    ),
    "family 5": (A | {"family": 5}, {"family": "out_of_range"}),
    "family is a text": (A | {"family": "4"}, {"family": "wrong_type"}),
    "count 0": (A | {"count": 0}, {"count": "out_of_range"}),
    "count is huge": (A | {"count": 10**30}, {"count": "out_of_range"}),
    "count is true": (A | {"count": True}, {"count": "wrong_type"}),
    "count is 1.0": (A | {"count": 1.0}, {"count": "wrong_type"}),
    "wait is a text": (A | {"wait": "yes"}, {"wait": "wrong_type"}),
    "org is a list": (A | {"org": []}, {"org": "wrong_type"}),
    "env has a new line": (A | {"env": "a\nb"}, {"env": "invisible_character"}),
    "host bits": (A | {"cidr": "10.0.0.1/30"}, {"cidr": "host_bits_set"}),
    "no address": (A | {"cidr": "next"}, {"cidr": "not_an_address"}),
    "exact and many": (A | {"cidr": "10.0.0.1", "count": 2}, {"cidr": "conflicting_fields"}),
    "exact of the other family": (
        A | {"cidr": "10.0.0.1", "family": 6},
        {"cidr": "mixed_family"},
    ),
    "exact elsewhere": (A | {"cidr": "10.7.0.1"}, {"cidr": "outside_pool"}),
    "exact but larger": (A | {"cidr": "10.0.0.0/30"}, {"cidr": "not_a_block"}),
    "state is not for them": (A | {"state": "held"}, {"state": "unknown_field"}),
    "several at once": (
        {"count": 0, "family": 7},
        {"holder": "required", "count": "out_of_range", "family": "out_of_range"},
    ),
}


@pytest.mark.sample(28)
@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_each_problem_is_told_with_its_field(
    body: dict[str, Any], expected: dict[str, str]
) -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/29", "fd00::/125")
    answer = api("POST", f"pools/{pool}/allocations/", body)
    codes = set(expected.values())
    problem = apis.refused(answer, 400, codes.pop() if len(codes) == 1 else "invalid")
    assert apis.fields(problem) == expected
    assert not Block.objects.exclude(holder_id="").exists()


def test_a_batch_has_a_limit() -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/16")
    holders = [{"kind": "vm", "id": f"v-{n}"} for n in range(11)]
    answer = api("POST", f"pools/{pool}/allocations/", {"holders": holders, "count": 1000})
    assert apis.fields(apis.refused(answer, 400, "out_of_range")) == {"count": "out_of_range"}


def test_a_family_that_the_pool_lacks() -> None:
    api = apis.Api()
    api.cluster()
    path = f"pools/{api.vm_pool('10.0.0.0/29')}/allocations/"
    answer = api("POST", path, A | {"family": 6})
    assert answer.status_code == 400
    assert apis.fields(answer.json()) == {"family": answer.json()["code"]}
