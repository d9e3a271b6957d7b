"""A CIDR in use that grows, shrinks, is merged or split: one answer at each entry point."""

import json
from typing import Any

import pytest
from django.urls import reverse

from pools.models import Pool
from tests import people
from tests.edges import api as apis

MERGED = (["10.130.0.0/24", "10.130.1.0/24"], ["10.130.0.0/23"])
CASES = [
    (["10.130.0.0/24"], ["10.130.0.0/23"]),
    MERGED,
    (["10.130.0.0/23"], ["10.130.0.0/24", "10.130.1.0/24"]),
    (["10.130.0.0/23"], ["10.130.0.0/24"]),
]
LOSES = (["10.130.0.0/23"], ["10.130.1.0/24"])


class Entry:
    """A pod pool with one block in use at its beginning, changed through one entry point."""

    def __init__(self, door: str, before: list[str]) -> None:
        self.api, self.door = apis.Api(), door
        self.api.cluster()
        part = {"mask_size": 28, "cidrs": [{"cidr": cidr} for cidr in before]}
        body = {"cluster": "prod", "name": "grow", "category": "pod", "ipv4": part}
        self.pool = self.api.create("pools/", body)["id"]
        holder = {"holder": {"kind": "node", "id": "n1"}}
        (self.block,) = self.api.create(f"pools/{self.pool}/allocations/", holder)["blocks"]

    def change(self, cidrs: list[str]) -> Any:
        part = {"mask_size": 28, "cidrs": [{"cidr": cidr} for cidr in cidrs]}
        if self.door == "rest":
            return self.api("PATCH", f"pools/{self.pool}/", {"ipv4": part}, If_Match="*")
        if self.door == "manifest":
            spec = {"ipv4": {"cidrs": cidrs, "maskSize": 28}}
            manifest = {
                "apiVersion": "cilium.io/v2", "kind": "CiliumPodIPPool",
                "metadata": {"name": "grow"}, "spec": spec,
            }  # fmt: skip
            body = {"cluster": "prod", "manifest": json.dumps(manifest)}
            return self.api("POST", "pools/import/", body)
        return self._form(cidrs)

    def _form(self, cidrs: list[str]) -> Any:
        before = [
            str(row.cidr) for row in Pool.objects.get(pk=self.pool).cidrs.order_by("position")
        ]
        posted: dict[str, Any] = {
            "version": Pool.objects.get(pk=self.pool).version, "_confirmed": "1",
            "cidrs-TOTAL_FORMS": len(before) + len(cidrs), "cidrs-INITIAL_FORMS": len(before),
        }  # fmt: skip
        for number, cidr in enumerate([*before, *cidrs]):
            posted |= {f"cidrs-{number}-cidr": cidr, f"cidrs-{number}-reserved": ""}
            if number < len(before):
                posted[f"cidrs-{number}-remove"] = "on"
        return people.browser().post(reverse("admin:pools_pool_edit", args=[self.pool]), posted)

    def cidrs(self) -> list[str]:
        return [str(row.cidr) for row in Pool.objects.get(pk=self.pool).cidrs.order_by("position")]


@pytest.mark.sample(12)
@pytest.mark.parametrize("door", ["rest", "manifest", "form"])
@pytest.mark.parametrize(("before", "after"), CASES)
def test_every_entry_point_takes_it(door: str, before: list[str], after: list[str]) -> None:
    entry = Entry(door, before)
    answer = entry.change(after)
    assert answer.status_code < 400, answer.content
    assert entry.cidrs() == after
    assert entry.api("GET", f"blocks/{entry.block['id']}/").json()["holder"]["id"] == "n1"


@pytest.mark.sample(3)
@pytest.mark.parametrize("door", ["rest", "manifest", "form"])
def test_every_entry_point_refuses_what_loses_a_block(door: str) -> None:
    before, after = LOSES
    entry = Entry(door, before)
    answer = entry.change(after)
    assert "10.130.0.0/24 has 1 held or cooling block: node n1" in answer.content.decode()
    assert entry.cidrs() == before


def test_a_migration_says_that_none_is_needed() -> None:
    entry = Entry("rest", ["10.130.0.0/24"])
    body = {"cidr": "10.130.0.0/24", "to": "10.130.0.0/23"}
    answer = entry.api("POST", f"pools/{entry.pool}/migrations/?dry_run=true", body)
    assert "replace 10.130.0.0/24 by 10.130.0.0/23 in the list" in answer.content.decode()
