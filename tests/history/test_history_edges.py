"""The history over REST and on its pages, with comparisons."""

import csv
import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from claims.access import memberships
from claims.models import Entry, IPPool, Network
from pools.core import block_fields, errors
from pools.models import Block, Cluster
from pools.platform import audit, database
from pools.register import pools
from pools.register.allocator import allocation
from pools.register.history import comparison
from tests import commands, factories, people
from tests.edges import api as apis

MAC = "02:00:00:00:00:01"
DAY = 86400


def now() -> str:
    return block_fields.format_time(database.now()) or ""


@pytest.fixture
def fleet(clock) -> dict[str, Any]:
    """`a` had the address at `first`, `b` has it now; the pool got another CIDR in between."""
    pool = factories.pool("10.0.0.0/30", name="blue", cooldown=3600, reserved=["10.0.0.2-10.0.0.2"])
    block = factories.take(pool, factories.holder("a", uid="u-1"), cidr="10.0.0.1/32")
    clock.advance(DAY)
    first = now()
    clock.advance(DAY)
    factories.give_back(block)
    clock.advance(10)
    cooling = now()
    clock.advance(DAY)
    pools.add_cidr(pool.pk, factories.entry("10.1.0.0/24"), author=factories.BY)
    factories.take(pool, factories.holder("b"), cidr="10.0.0.1/32")
    clock.advance(10)
    return {"pool": pool, "first": first, "cooling": cooling}


@pytest.fixture(params=["sealed", "not sealed"])
def history_fleet(request: pytest.FixtureRequest, fleet: dict[str, Any]) -> dict[str, Any]:
    if request.param == "sealed":
        audit.seal()
    return fleet


def test_what_a_holder_had_and_when(history_fleet: dict[str, Any]) -> None:
    api = apis.Api("viewer")
    rows = api("GET", "holders/vm/a/history/").json()["results"]
    assert [(row["state"], row["block"]) for row in rows] == [
        ("cooling", "10.0.0.1/32"), ("held", "10.0.0.1/32"),
    ]  # fmt: skip
    assert rows[0]["since"] == rows[1]["until"]
    by_uid = api("GET", "holders/uid/u-1/history/").json()["results"]
    assert by_uid == rows
    then = api("GET", f"holders/vm/a/history/?at={history_fleet['first']}").json()["results"]
    assert [row["state"] for row in then] == ["held"]
    assert api("GET", "holders/vm/a/history/?uid=other").json()["results"] == []
    assert api("GET", "holders/node/a/history/").json()["results"] == []
    page = api("GET", "holders/vm/a/history/?limit=1").json()
    assert len(page["results"]) == 1
    following = page["next"].partition("/api/v1/")[2]
    assert api("GET", following).json()["results"] == rows[1:]


@pytest.mark.sample(2)
def test_how_a_pool_looked(history_fleet: dict[str, Any]) -> None:
    api, pool = apis.Api("viewer"), history_fleet["pool"]
    document = api("GET", f"pools/{pool.pk}/at/?at={history_fleet['first']}").json()
    assert (document["state"], document["settings"]["name"]) == ("present", "blue")
    assert [cidr["cidr"] for cidr in document["cidrs"]] == ["10.0.0.0/30"]
    assert document["cidrs"][0]["reserved_ranges"][0]["range"] == "10.0.0.2-10.0.0.2"
    assert document["counts"]["ipv4"] == {
        "capacity": "2", "held": "1", "cooling": "0", "withheld": "1",
    }  # fmt: skip
    assert [row["holder"]["id"] for row in document["results"]] == ["a"]
    cooling = api("GET", f"pools/{pool.pk}/at/?at={history_fleet['cooling']}").json()
    assert cooling["counts"]["ipv4"]["held"] == "0"
    assert cooling["counts"]["ipv4"]["cooling"] == "1"
    assert [row["state"] for row in cooling["results"]] == ["cooling"]
    today = api("GET", f"pools/{pool.pk}/at/").json()
    assert [row["holder"]["id"] for row in today["results"]] == ["b"]
    assert today["counts"]["ipv4"]["held"] == "1"
    assert len(today["cidrs"]) == 2
    before = api("GET", f"pools/{pool.pk}/at/?at=2020-01-01T00:00:00Z").json()
    assert (before["state"], before["settings"], before["results"]) == ("absent", None, [])


def test_a_pool_that_is_gone(fleet: dict[str, Any], clock) -> None:
    api, pool = apis.Api("viewer"), fleet["pool"]
    number = pool.pk
    rows = api("GET", "holders/vm/b/history/").json()["results"]
    assert len(rows) == 1
    for block in list(pool.blocks.filter(state="held")):
        factories.give_back({"id": block.pk, "holder": {"kind": "vm", "id": "b", "uid": ""}})
    clock.advance(DAY)
    pools.delete(number, author=factories.BY)
    clock.advance(10)
    document = api("GET", f"pools/{number}/at/?at={fleet['first']}").json()
    assert (document["state"], document["counts"]["ipv4"]["held"]) == ("present", "1")
    assert [row["pool"] for row in document["results"]] == ["blue"]
    assert api("GET", f"pools/{number}/at/").json()["state"] == "deleted"
    apis.refused(api("GET", f"pools/{number + 999}/at/"), 404, "not_found")


FUTURE = "2199-01-01T00:00:00Z"


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", ["pools/{}/at/?at=", "holders/vm/a/history/?at=", "history/?since=",
    "addresses/10.0.0.1/?at="])  # fmt: skip
@pytest.mark.parametrize(
    ("text", "code"),
    [(FUTURE, "future_time"), ("yesterday", "time"), ("2026-05-05T14:02:00", "time")],
)
def test_a_time_that_cannot_be_meant(fleet: Any, path: str, text: str, code: str) -> None:
    answer = apis.Api("viewer")("GET", path.format(fleet["pool"].pk) + text)
    apis.refused(answer, 400, code)


def test_the_search_over_rest(history_fleet: dict[str, Any]) -> None:
    api = apis.Api("viewer")
    first_page = api("GET", "history/?q=10.0.0.1&limit=1").json()
    assert first_page["results"][0]["type"] == "block.allocated"
    assert first_page["next"]
    rows = api("GET", "history/?holder=a&kind=block").json()["results"]
    assert [row["type"] for row in rows] == ["released", "block.allocated"]
    assert rows[0]["before"]["state"] == "held"
    assert rows[0]["after"]["state"] == "cooling"
    for bad, code in (("kind=x", "invalid_choice"), ("mac=x", "mac_syntax"), ("address=x", "not_an_address"),
                      ("cursor=x", "wrong_type"), ("colour=x", "unknown_parameter")):  # fmt: skip
        apis.refused(api("GET", f"history/?{bad}"), 400, code)


def test_a_vm_owner_finds_their_own_only() -> None:
    cluster = factories.cluster()
    network = Network.objects.create(cluster=cluster, name="net", subnets=["10.9.0.0/24"])
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="net")
    for space, mac in (("mine", MAC), ("theirs", MAC.replace("01", "02"))):
        Entry.objects.create(ippool=ippool, mac=mac, ips=["10.9.0.5/24"], vm="web", namespace=space)
    moved = Entry.objects.get(namespace="theirs")
    Entry.objects.filter(pk=moved.pk).update(namespace="mine")
    owner = apis.Api("vm-owner")
    memberships.create(cluster, ["mine"], author=factories.BY, user=owner.user)
    rows = owner("GET", "history/?q=web").json()["results"]
    assert [(row["type"], row["before"]) for row in rows] == [
        ("entry.changed", None), ("entry.created", None),
    ]  # fmt: skip
    assert "theirs" not in json.dumps(rows)
    assert owner("GET", "history/?vm=theirs/web").json()["results"] == []
    assert owner("GET", "history/?q=net").json()["results"] == []
    assert owner("GET", "history/?cluster=nowhere").json()["results"] == []
    apis.refused(owner("GET", "holders/vm/web/history/"), 403, "permission_denied")


def who(*words: str) -> tuple[int, list[dict[str, Any]]]:
    status, text = commands.status_and_output("ipam", "who", *words, "-o", "json")
    return status, json.loads(text)


@pytest.mark.sample(2)
def test_ipam_who(history_fleet: dict[str, Any]) -> None:
    assert [row["holder_id"] for row in who("10.0.0.1")[1]] == ["b"]
    assert [row["holder_id"] for row in who("10.0.0.1", "--at", history_fleet["first"])[1]] == ["a"]
    assert [row["address"] for row in who("a", "--at", history_fleet["first"])[1]] == [
        "10.0.0.1/32"
    ]
    assert [row["address"] for row in who("vm:b")[1]] == ["10.0.0.1/32"]
    assert who("a") == (3, [])
    assert who("10.0.0.3") == (3, [])
    assert who("10.0.0.1", "--cluster", history_fleet["pool"].cluster.name)[0] == 0
    for words in (["--at", FUTURE], ["--at", "noon"], ["--cluster", "nowhere"]):
        with pytest.raises(CommandError):
            call_command("ipam", "who", "10.0.0.1", *words)


def test_ipam_who_of_a_mac(clock) -> None:
    cluster = factories.cluster()
    network = Network.objects.create(cluster=cluster, name="net", subnets=["10.9.0.0/24"])
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="net")
    entry = Entry.objects.create(
        ippool=ippool, mac=MAC, ips=["10.9.0.5/24"], vm="web", namespace="s"
    )
    clock.advance(10)
    then = now()
    clock.advance(10)
    Entry.objects.filter(pk=entry.pk).update(ips=["10.9.0.6/24"])
    clock.advance(10)
    ((row,),) = who(MAC.upper())[1:]
    assert (row["address"], row["holder_id"], row["cluster"]) == (
        ["10.9.0.6"],
        "s/web",
        cluster.name,
    )
    assert who("s/web", "--at", then)[1][0]["address"] == ["10.9.0.5"]
    Entry.objects.all().delete()
    clock.advance(10)
    assert who(MAC) == (3, [])


@pytest.mark.exhaustive
def test_pages(history_fleet: dict[str, Any]) -> None:
    client = people.browser(people.VIEWER)
    url = reverse("admin:history")
    then = history_fleet["first"]
    for query, words in (
        ({}, "Search the history"),
        ({"q": "10.0.0.1", "at": then}, ">a</a>"),
        ({"q": "a"}, "released"),
        ({"at": then}, "CIDR added"),
        ({"q": "10.0.0.1", "at": FUTURE}, "future"),
        ({"q": "nobody"}, "No events found."),
        ({"kind": "pool", "object": history_fleet["pool"].pk}, "pool created"),
    ):
        page = client.get(url, query)
        assert page.status_code == 200
        assert words in page.content.decode(), query
    text = b"".join(client.get(url, {"q": "a", "format": "csv"}).streaming_content).decode()
    assert text.count("\r\n") == 3
    page = client.get(reverse("admin:history_pool", args=[history_fleet["pool"].pk]), {"at": then})
    assert ">a</a>" in page.content.decode()
    assert client.get(reverse("admin:history_pool", args=[10**9])).status_code == 404
    stranger = people.browser(())
    assert stranger.get(url).status_code == 403
    assert Cluster.objects.count() == 1


# --- Two moments are compared: what was gained, lost, or moved to another holder in between -------
@pytest.fixture
def pool() -> Any:
    return factories.pool("10.0.0.0/29", name="blue", cooldown=0)


@pytest.fixture(params=["sealed", "not sealed"])
def history(request: pytest.FixtureRequest, pool: Any, clock: Any) -> datetime:
    """Return the moment before which a, b and c were allocated.

    After it: a was released, b's block moved to d, c released and got its block again, and e came and went.
    """
    first, second, third = (factories.take(pool, factories.holder(name)) for name in "abc")
    clock.advance(60)
    moment = database.now()
    if request.param == "sealed":
        audit.seal()
    clock.advance(60)
    for block in (first, second, third):
        factories.give_back(block)
    clock.advance(60)
    _take_at(pool, "d", second)
    _take_at(pool, "c", third)
    factories.give_back(factories.take(pool, factories.holder("e")))
    factories.take(pool, factories.holder("f"))
    clock.advance(60)
    if request.param == "sealed":
        audit.seal()
    return moment


def _take_at(pool: Any, holder: str, block: Any) -> Any:
    return factories.take(pool, factories.holder(holder), cidr=block["cidr"])


def summary(result: comparison.Comparison) -> set[tuple[str, str, str]]:
    """Return (change, holder before, holder after) of each difference."""
    return {
        (row.change, (row.before or {}).get("id", ""), (row.after or {}).get("id", ""))
        for row in result.differences
    }


def test_what_changed(pool: Any, history: datetime) -> None:
    result = comparison.compare(history, database.now())
    assert ("moved", "b", "d") in summary(result)
    assert {"a", "b"} == {row.before["id"] for row in result.differences if row.before}
    assert {"d", "f"} == {row.after["id"] for row in result.differences if row.after}
    # c has its block again, and e had one in between only.
    assert sum(result.counts.values()) == len(result.differences)
    assert {row.pool for row in result.differences} == {"blue"}


def test_between_two_moments_of_the_past(history: datetime) -> None:
    released = comparison.compare(history, history + timedelta(seconds=90))
    assert summary(released) == {("lost", holder, "") for holder in "abc"}
    assert released.counts == {"gained": 0, "lost": 3, "moved": 0}
    before = comparison.compare(history - timedelta(hours=1), history)
    assert summary(before) == {("gained", "", holder) for holder in "abc"}
    assert comparison.compare(history - timedelta(hours=2), history - timedelta(hours=1)).counts == {
        "gained": 0, "lost": 0, "moved": 0,
    }  # fmt: skip


def test_pages_of_a_comparison(history: datetime) -> None:
    since, until = history - timedelta(hours=1), history
    whole = comparison.compare(since, until)
    below, rows = None, []
    for _page in range(3):
        page = comparison.compare(since, until, below=below, limit=1)
        assert page.counts == whole.counts
        rows += page.differences
        below = page.below
    assert (rows, below) == (whole.differences, None)


def test_other_pools_and_deleted_ones(pool: Any, history: datetime) -> None:
    other = factories.pool("10.9.0.0/29", name="green", within=factories.cluster())
    factories.give_back(factories.take(other, factories.holder("x")))
    factories.take(other, factories.holder("y"))
    now = database.now()
    of_its_cluster = comparison.select_pools(other.cluster_id, None)
    assert summary(comparison.compare(history, now, of_its_cluster)) == {("gained", "", "y")}
    of_pool = comparison.compare(history, now, {pool.pk})
    assert summary(of_pool) == summary(comparison.compare(history, now)) - {("gained", "", "y")}
    assert comparison.compare(history, now, set()).differences == []


def test_a_deleted_pool_is_lost(pool: Any, history: datetime) -> None:
    for block in Block.objects.filter(pool=pool, state="held"):
        holder = factories.holder(block.holder_id)
        allocation.release(block.pk, holder, author=factories.BY)
    pools.delete(pool.pk, author=factories.BY)
    changes = comparison.compare(history, database.now()).differences
    assert {(row.change, row.before and row.before["id"], row.pool) for row in changes} == {
        ("lost", "a", "blue"), ("lost", "b", "blue"), ("lost", "c", "blue"),
    }  # fmt: skip


def test_the_order_of_the_moments() -> None:
    now = database.now()
    with pytest.raises(errors.InvalidInput) as refusal:
        comparison.compare(now, now)
    assert [problem.code for problem in refusal.value.problems] == ["time_order"]


# --- entry points ---------------------------------------------------------------------------------


def test_over_rest(pool: Any, history: datetime) -> None:
    api = apis.Api()
    since = history.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    answer = api("GET", f"history/compare/?since={since}&pool=blue")
    assert answer.status_code == 200, answer.json()
    body = answer.json()
    assert body["counts"]["moved"] == 1
    (moved,) = [row for row in body["results"] if row["change"] == "moved"]
    assert (moved["before"]["id"], moved["after"]["id"]) == ("b", "d")
    of_a_day = api("GET", "history/compare/").json()["counts"]
    assert sum(of_a_day.values()) == 3  # c, d and f hold blocks; a day ago nobody did
    future = api("GET", "history/compare/?since=2090-01-01T00:00:00Z")
    assert apis.fields(apis.refused(future, 400, "future_time")) == {"since": "future_time"}


def test_on_the_page_and_as_csv(admin_client: Any, history: datetime) -> None:
    page = admin_client.get(
        "/admin/history/compare/", {"since": history.strftime("%Y-%m-%dT%H:%M")}
    )
    assert page.status_code == 200
    text = page.content.decode()
    assert "moved" in text
    wrong = admin_client.get("/admin/history/compare/", {"since": "yesterday"})
    assert wrong.status_code == 200
    assert "cad-error" in wrong.content.decode()
    later = admin_client.get("/admin/history/compare/", {"since": "2199-01-01T00:00"})
    assert "in the future" in later.content.decode()
    file = admin_client.get(
        "/admin/history/compare/", {"since": "2020-01-01T00:00", "format": "csv"}
    )
    rows = list(csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode())))
    assert {row["after_id"] for row in rows if row["change"] == "gained"} == {"c", "d", "f"}
