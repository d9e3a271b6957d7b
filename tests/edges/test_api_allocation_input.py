"""What POST pools/{id}/allocations/ refuses, field by field, before anything is allocated."""

from typing import Any

import pytest

from pools.models import Block
from tests.edges import api as apis

A = apis.holder("a")
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a holder is null": ({"holders": [None]}, {"holders.0": "wrong_type"}),
    "a holder twice": (
        {"holders": [{"kind": "vm", "id": "b"}] * 2},
        {"holders.1": "duplicate_holder"},
    ),
    "count is huge": (A | {"count": 10**30}, {"count": "out_of_range"}),
    "count is 1.0": (A | {"count": 1.0}, {"count": "wrong_type"}),
    "env has a new line": (A | {"env": "a\nb"}, {"env": "invisible_character"}),
    "exact and many": (A | {"cidr": "10.0.0.1", "count": 2}, {"cidr": "conflicting_fields"}),
    "exact of the other family": (
        A | {"cidr": "10.0.0.1", "family": 6},
        {"cidr": "mixed_family"},
    ),
    "exact elsewhere": (A | {"cidr": "10.7.0.1"}, {"cidr": "outside_pool"}),
    "exact but larger": (A | {"cidr": "10.0.0.0/30"}, {"cidr": "not_a_block"}),
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
