"""Events of VM networks: told, filtered, and as bars of time."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse

from claims import sql
from claims.access import memberships
from claims.models import Entry, IPAMClaim, IPPool, Network
from claims.networks import pools
from pools.models import Cluster, Event, Pool
from pools.platform import events
from pools.register import event_filters, retention
from tests import factories, people, stale
from tests.claims import worlds
from tests.claims.imports import pages
from tests.edges import api as apis
from tests.pools.conftest import Clock

MAC = "02:00:00:00:00:07"


@pytest.fixture
def logged_cluster() -> Cluster:
    """One life of everything."""
    cluster = factories.cluster()
    with events.recorded_by(factories.BY):
        network = Network.objects.create(cluster=cluster, name="net", subnets=["10.0.0.0/24"])
        ippool = IPPool.objects.create(cluster=cluster, network=network, name="ips")
        entry = Entry.objects.create(
            ippool=ippool, mac=MAC, ips=["10.0.0.5/24", "fd00::5/64"], vm="web", namespace="shop"
        )
        Entry.objects.create(ippool=ippool, mac="02:00:00:00:00:08", ips=["fd00::6/64"])
        IPAMClaim.objects.create(
            cluster=cluster, network=network, namespace="shop", name="web.net", vm="web",
            ips=["10.0.0.5/24"],
        )  # fmt: skip
        Entry.objects.filter(pk=entry.pk).update(ips=["10.0.0.9/24"])
        Entry.objects.filter(pk=entry.pk).delete()
    user = User.objects.create(username="vera")
    memberships.create(cluster, ["bank", "shop"], author=factories.BY, user=user)
    return cluster


def rows(prefix: str) -> list[tuple[Any, ...]]:
    result = Event.objects.filter(type__startswith=prefix).order_by("id")
    names = ("type", "cidr", "holder_kind", "holder_id", "message")
    return [tuple(item) for item in result.values_list(*names)]


def test_each_change_is_told(logged_cluster: Cluster) -> None:
    assert rows("network.") == [("network.created", "", "", "", "net")]
    assert rows("ippool.") == [("ippool.created", "", "", "", "ips")]
    web, first = ("vm", "shop/web"), f"{MAC} 10.0.0.5/24, fd00::5/64"
    assert rows("entry.") == [
        ("entry.created", "10.0.0.5/32", *web, first),
        ("entry.created", "fd00::6/128", "mac", "02:00:00:00:00:08", "02:00:00:00:00:08 fd00::6/64"),
        ("entry.changed", "10.0.0.9/32", *web, f"{MAC} 10.0.0.9/24"),
        ("entry.deleted", "10.0.0.9/32", *web, f"{MAC} 10.0.0.9/24"),
    ]  # fmt: skip
    assert rows("ipamclaim.") == [("ipamclaim.created", "10.0.0.5/32", *web, "shop/web.net")]
    user = ("user", "vera", "VM owner in bank, shop")
    assert rows("membership.") == [("membership.created", "", *user)]
    ours = Event.objects.filter(type__regex="^(network|ippool|entry|ipamclaim|membership)[.]")
    assert {(our.cluster_id, our.actor, our.request_id) for our in ours} == {
        (logged_cluster.pk, "tester", "r-1")
    }


def test_an_event_of_an_entry_keeps_its_cluster_without_its_ippool(logged_cluster: Cluster) -> None:
    IPPool.objects.all().delete()
    deleted = Event.objects.filter(type="entry.deleted")
    assert {item.cluster_id for item in deleted} == {logged_cluster.pk}


def test_the_api_answers_the_state_before_and_after(logged_cluster: Cluster) -> None:
    answer = apis.Api("viewer")("GET", "events/?type=entry.changed&holder_id=shop/web").json()
    (event,) = answer["results"]
    assert (event["cluster"], event["block"]) == (logged_cluster.name, "10.0.0.9/32")
    assert event["before"]["ips"] == ["10.0.0.5/24", "fd00::5/64"]
    assert event["after"]["ips"] == ["10.0.0.9/24"]
    (gone,) = apis.Api("viewer")("GET", "events/?type=entry.deleted").json()["results"]
    assert (gone["before"]["mac"], gone["after"]) == (MAC, None)


@pytest.mark.exhaustive
def test_every_event_has_a_page_and_its_subject_a_filter(logged_cluster: Cluster) -> None:
    browser = people.browser(people.VIEWER)
    for event in Event.objects.all():
        answer = browser.get(reverse("admin:pools_event_change", args=[event.pk]))
        assert answer.status_code == 200, event.type
    for subject in ("network", "ippool", "entry", "ipamclaim", "membership"):
        url = reverse("admin:pools_event_changelist", query={"type": subject})
        result_list = browser.get(url).context["cl"].result_list
        assert {item.type.partition(".")[0] for item in result_list} == {subject}


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("text", "count"),
    [(MAC, 3), (MAC.replace(":", "-").upper(), 3), ("shop/web", 4), ("web", 4), ("web.net", 1)],
)
def test_a_search_finds_them(logged_cluster: Cluster, text: str, count: int) -> None:
    url = reverse("admin:pools_event_changelist", query={"q": text})
    result_list = people.browser(people.VIEWER).get(url).context["cl"].result_list
    assert len(result_list) == count
    assert {item.type.partition(".")[0] for item in result_list} <= {"entry", "ipamclaim"}


def test_they_are_purged_with_the_others(logged_cluster: Cluster) -> None:
    Clock().advance(40 * 86400)
    retention.purge_events(30)
    assert not Event.objects.filter(type__startswith="entry.").exists()
    assert not Event.objects.filter(type__startswith="membership.").exists()


def test_the_installed_view_is_the_one_of_both_files() -> None:
    text = sql.event_log().replace("VIEW pools_event_log", "TEMPORARY VIEW event_log_as_written")
    with connection.cursor() as cursor:
        cursor.execute(text)
        cursor.execute(
            "SELECT pg_get_viewdef('pools_event_log'::regclass),"
            " pg_get_viewdef('event_log_as_written'::regclass)"
        )
        installed, written = cursor.fetchone()
    assert installed == written
    for table in events.event_models().values():
        assert table._meta.db_table in installed


# --- The event log filtered by the pool and the cluster of a VM network: also by tables that have
# no such column
@pytest.mark.sample(2)
@pytest.mark.parametrize("most", [0, 10_000])
def test_the_filters_find_what_the_columns_say(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(event_filters, "MOST", most)
    network = worlds.network()
    pools.sync_pool(network, author=factories.BY)
    network = Network.objects.get(pk=network.pk)
    entry = worlds.entry(worlds.ippool(network), "02:00:00:00:00:0a", "10.0.0.5/24", vm="db")
    worlds.claim(network, "db", ips_requested=["10.0.0.6/24"])
    other = factories.pool("10.9.0.0/24")
    factories.take(other)
    entry.delete()
    deleted_pool = factories.pool("10.8.0.0/24")
    deleted_id = deleted_pool.pk
    deleted_pool.delete()
    for pool_id in (*Pool.objects.values_list("pk", flat=True), deleted_id):
        of_pool = event_filters.of_pools(Event.objects.all(), [pool_id])
        assert {*of_pool} == {*Event.objects.filter(pool_id=pool_id)}
        assert of_pool.exists()
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        of_cluster = event_filters.of_cluster(Event.objects.all(), cluster_id)
        assert {*of_cluster} == {*Event.objects.filter(cluster_id=cluster_id)}
    tables = {
        event.table for event in event_filters.of_pools(Event.objects.all(), [network.pool_id])
    }
    assert {"entryevent", "ipamclaimevent"} <= tables


@pytest.mark.exhaustive
def test_the_newest_events_of_many_read_their_own_rows_only(
    monkeypatch: pytest.MonkeyPatch, network: Network
) -> None:
    """Not the whole table of events, of which there may be millions."""
    monkeypatch.setattr(event_filters, "MOST", 0)
    pools.sync_pool(network, author=factories.BY)
    network = Network.objects.get(pk=network.pk)
    ippool = worlds.ippool(network)
    for number in range(2, 202):
        mac = f"02:00:00:00:00:{number:02x}"
        worlds.entry(ippool, mac, f"10.0.0.{number}/24", vm=f"vm-{number}")
    stale.sql("ANALYZE")
    of_pool = event_filters.of_pools(Event.objects.all(), [network.pool_id]).order_by("-id")
    before = stale.read()
    assert len(of_pool[:20]) == 20
    assert stale.since(before).get("claims_entryevent", 0) <= 100


# --- The bars of time of MAC entries and claims, and what of them a VM owner sees -----------------
@pytest.fixture
def network() -> Network:
    return worlds.network("net", subnets=("10.0.0.0/24",))


@pytest.fixture
def entry(network: Network) -> Entry:
    """An entry that was the bank's before it was the shop's."""
    made = worlds.entry(
        worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.5/24", vm="safe", namespace="bank"
    )
    with events.recorded_by(worlds.BY):
        Entry.objects.filter(pk=made.pk).update(vm="web", namespace="shop")
    return Entry.objects.get(pk=made.pk)


def _page(client: Any, entry: Entry) -> str:
    return pages.text(client.get(reverse("admin:claims_entry_change", args=[entry.pk])))


def test_an_entry_shows_what_it_named_when(entry: Entry) -> None:
    page = _page(pages.browser("viewer"), entry)
    assert 'aria-label="02:00:00:00:00:01 over time"' in page
    for label in ("bank/safe 10.0.0.5/24", "shop/web 10.0.0.5/24"):
        assert f"<td>{label}</td>" in page


def test_an_owner_does_not_see_what_others_had(network: Network, entry: Entry) -> None:
    page = _page(pages.owner(network, "shop"), entry)
    assert "<td>shop/web 10.0.0.5/24</td>" in page
    assert "bank/safe" not in page
    assert "10.0.0.5 ·" not in page


def test_a_claim_shows_its_addresses_over_time(network: Network) -> None:
    claim = worlds.claim(network, "web", "10.0.0.7/24", namespace="shop")
    url = reverse("admin:claims_ipamclaim_change", args=[claim.pk])
    page = pages.text(pages.browser("viewer").get(url))
    assert "<td>shop/web 10.0.0.7/24</td>" in page
