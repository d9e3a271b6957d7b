"""The log of events also tells of VM networks, and no later migration can drop that unnoticed."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse

from claims import sql
from claims.access import memberships
from claims.models import Entry, IPAMClaim, IPPool, Network
from pools.models import Cluster, Event
from pools.platform import events
from pools.register import retention
from tests import factories, people
from tests.edges import api as apis

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
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('ipam.clock_offset', '40 days', true)")
    retention.purge_events(30)
    assert not Event.objects.filter(type__startswith="entry.").exists()
    assert not Event.objects.filter(type__startswith="membership.").exists()


def test_a_vm_owner_sees_none(logged_cluster: Cluster) -> None:
    owner = apis.Api("vm-owner")
    apis.refused(owner("GET", "events/"), 403, "permission_denied")


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
