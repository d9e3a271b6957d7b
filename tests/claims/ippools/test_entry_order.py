"""MAC entries and claims in the order of their addresses, on the page and over REST, page by page."""

from typing import Any

import pytest
from django.urls import reverse

from tests import people
from tests.claims import worlds
from tests.edges.api import ROOT, Api

ADDRESSES = [("fd00::9/64", "10.0.0.100/24"), ("10.0.0.9/24",), ("fd00::1/64",), ("10.0.0.10/24",)]
ORDER = ["10.0.0.9/24", "10.0.0.10/24", "fd00::9/64", "fd00::1/64"]  # the third has 10.0.0.100


def pages(api: Api, path: str) -> list[str]:
    """The first address of each row, of all pages of one row."""
    result, url = [], f"{path}limit=1"
    while url:
        document = api("GET", url.removeprefix(f"http://testserver{ROOT}")).json()
        rows: list[Any] = document["results"]
        result += [(row.get("ips") or row["status"]["ips"] or [""])[0] for row in rows]
        url = document["next"] or ""
    return result


@pytest.mark.exhaustive
def test_entries_by_address() -> None:
    ippool = worlds.ippool(worlds.network(subnets=("10.0.0.0/24", "fd00::/64")))
    for number, ips in enumerate(ADDRESSES):
        worlds.entry(ippool, f"02:00:00:00:00:{number:02}", *ips)
    api, path = Api(), f"ippools/{ippool.pk}/entries/"
    assert pages(api, f"{path}?ordering=address&") == ORDER
    assert pages(api, f"{path}?ordering=-address&") == ORDER[::-1]
    changelist = reverse("admin:claims_entry_changelist")
    for sign in ("", "-"):
        page = people.browser().get(changelist, {"o": f"{sign}2"})
        shown = [entry.ips[0] for entry in page.context["cl"].result_list]
        assert shown == (ORDER if not sign else ORDER[::-1])


@pytest.mark.exhaustive
def test_claims_by_address_those_without_one_last() -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    for number, ips in enumerate([*ADDRESSES, ()]):
        worlds.claim(network, f"vm-{number}", *ips)
    assert pages(Api(), "ipamclaims/?ordering=address&") == [*ORDER, ""]


@pytest.mark.parametrize("cursor", ["W2ZhbHNlLFsieCIsMV1d", "W2ZhbHNlLFsxLDFdXQ"])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    ippool = worlds.ippool(worlds.network())
    answer = Api()("GET", f"ippools/{ippool.pk}/entries/?ordering=address&cursor={cursor}")
    assert answer.status_code == 400
