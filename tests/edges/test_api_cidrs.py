"""The CIDRs and reserved ranges of a pool as resources of their own."""

import pytest

from tests.edges import api as apis


@pytest.fixture
def place(api: apis.Api) -> str:
    return f"pools/{api.vm_pool('10.0.0.0/29')}/"


def test_a_cidr_comes_and_goes(api: apis.Api, place: str) -> None:
    body = {"cidr": "10.0.1.0/29", "reserved_ranges": ["10.0.1.0/31"]}
    document = api.create(f"{place}cidrs/", body)
    assert document["cidr"] == "10.0.1.0/29"
    assert [reserved_range["range"] for reserved_range in document["reserved_ranges"]] == [
        "10.0.1.0-10.0.1.1"
    ]
    listed = api("GET", f"{place}cidrs/").json()["results"]
    assert [item["cidr"] for item in listed] == ["10.0.0.0/29", "10.0.1.0/29"]
    assert listed[1] == document
    assert api("DELETE", f"{place}cidrs/{document['id']}/").status_code == 204
    apis.refused(api("DELETE", f"{place}cidrs/{document['id']}/"), 404, "not_found")


def test_a_cidr_in_use_stays_and_says_why(api: apis.Api, place: str) -> None:
    api.take(int(place.split("/")[1]), "vm-17")
    (cidr,) = api("GET", f"{place}cidrs/").json()["results"]
    problem = apis.refused(api("DELETE", f"{place}cidrs/{cidr['id']}/"), 409, "cidr_in_use")
    assert "vm-17" in problem["detail"]
    assert "1" in problem["detail"]


def test_a_reserved_range_stops_new_blocks_and_frees_none(api: apis.Api, place: str) -> None:
    pool = int(place.split("/")[1])
    held = api.take(pool, "a")
    (cidr,) = api("GET", f"{place}cidrs/").json()["results"]
    ranges = f"{place}cidrs/{cidr['id']}/reserved-ranges/"
    document = api.create(ranges, {"range": "10.0.0.0/29", "reason": "moves out"})
    assert (document["range"], document["reason"]) == ("10.0.0.0-10.0.0.7", "moves out")
    assert api("GET", f"blocks/{held['id']}/").json()["state"] == "held"
    answer = api("POST", f"{place}allocations/", apis.holder("b"))
    apis.refused(answer, 409, "ipam_exhausted")
    assert api("DELETE", f"{place}reserved-ranges/{document['id']}/").status_code == 204
    assert api.take(pool, "b")["cidr"] == "10.0.0.2/32"
    apis.refused(api("DELETE", f"{place}reserved-ranges/{document['id']}/"), 404, "not_found")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"range": "10.0.0.4-10.0.0.2"}, 400, "range_reversed"),
        ({"range": "10.0.9.0-10.0.9.1"}, 400, "range_outside_cidr"),
        ({"range": "10.0.0.5-10.0.0.6"}, 409, "ranges_overlap"),
        ({"range": "10.0.0.1-10.0.0.2", "reason": "a\tb\x1b"}, 400, "invisible_character"),
        ({"first": "10.0.0.1", "last": "10.0.0.2"}, 400, "invalid"),
    ],
    ids=[
        "reversed",
        "outside",
        "overlap",
        "escape",
        "other names",
    ],
)
def test_a_range_that_is_refused(
    api: apis.Api, place: str, body: dict[str, str], status: int, code: str
) -> None:
    (cidr,) = api("GET", f"{place}cidrs/").json()["results"]
    ranges = f"{place}cidrs/{cidr['id']}/reserved-ranges/"
    api.create(ranges, {"range": "10.0.0.6-10.0.0.7"})
    apis.refused(api("POST", ranges, body), status, code)
    (after,) = api("GET", f"{place}cidrs/").json()["results"]
    assert len(after["reserved_ranges"]) == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"cidr": "10.0.0.4/30"}, 409, "cidr_overlap"),
        ({"cidr": "fd00::/104"}, 400, "family"),
    ],
    ids=["overlap", "no such family"],
)
def test_a_cidr_that_is_refused(
    api: apis.Api, place: str, body: dict[str, str], status: int, code: str
) -> None:
    apis.refused(api("POST", f"{place}cidrs/", body), status, code)
    assert len(api("GET", f"{place}cidrs/").json()["results"]) == 1


def test_parts_of_another_pool_are_not_found(api: apis.Api, place: str) -> None:
    other = api.vm_pool("10.5.0.0/29", name="other")
    (cidr,) = api("GET", f"{place}cidrs/").json()["results"]
    foreign = f"pools/{other}/cidrs/{cidr['id']}/"
    apis.refused(api("DELETE", foreign), 404, "not_found")
    body = {"range": "10.0.0.1-10.0.0.2"}
    apis.refused(api("POST", f"{foreign}reserved-ranges/", body), 404, "not_found")
    document = api.create(f"{place}cidrs/{cidr['id']}/reserved-ranges/", body)
    apis.refused(
        api("DELETE", f"pools/{other}/reserved-ranges/{document['id']}/"), 404, "not_found"
    )
    apis.refused(api("GET", "pools/999999/cidrs/"), 404, "not_found")
    apis.refused(api("POST", "pools/999999/cidrs/", {"cidr": "10.6.0.0/29"}), 404, "not_found")
