"""The history: what is searched in it, and what it has of tokens."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.urls import reverse
from knox.models import AuthToken

from claims.models import Entry, IPAMClaim, IPPool, Network, VMImport, Wave
from pools.models import Event, TokenEvent
from pools.platform import audit, database
from pools.platform.history import search
from pools.platform.history.search import HistoryQuery
from pools.register import pools
from tests import factories, people

MAC = "02:00:00:00:00:01"


def found_types(*queries: HistoryQuery, **options: Any) -> list[str]:
    """Types of what was found, the oldest first."""
    page = search.search(list(queries), **options)
    return [event.type for event in reversed(page.events)]


def boxed(text: str, **options: Any) -> list[str]:
    return found_types(*search.queries_of_text(text), **options)


@pytest.fixture(params=["sealed", "not sealed"])
def fleet(request: pytest.FixtureRequest, clock) -> Any:
    """A pool whose one address two holders had, and a VM network; an hour between the two."""
    pool = factories.pool("10.0.0.0/32", name="blue", cooldown=0)
    block = factories.take(pool, factories.holder("a", uid="u-1"), org="acme", env="prod")
    factories.give_back(block)
    cluster = pool.cluster
    network = Network.objects.create(cluster=cluster, name="shop-net", subnets=["10.9.0.0/24"])
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="shop-pool")
    entry = Entry.objects.create(
        ippool=ippool, mac=MAC, ips=["10.9.0.5/24"], vm="web", namespace="shop"
    )
    IPAMClaim.objects.create(
        cluster=cluster, network=network, namespace="shop", name="web.net", mac=MAC, vm="web",
        ips=["10.9.0.5/24"],
    )  # fmt: skip
    VMImport.objects.create(cluster=cluster, file_name="vms.csv")
    Wave.objects.create(cluster=cluster, name="saturday")
    clock.advance(3600)
    factories.take(pool, factories.holder("b"), org="acme", env="test")
    if request.param == "sealed":
        audit.seal()
    return entry


CASES = [
    ("10.0.0.0", ["pool.cidr_added", "block.allocated", "released", "block.allocated"]),
    ("10.0.0.0/24", ["pool.cidr_added", "block.allocated", "released", "block.allocated"]),
    ("10.0.0.9/24", ["pool.cidr_added", "block.allocated", "released", "block.allocated"]),
    ("10.9.0.5", ["entry.created", "ipamclaim.created"]),
    ("10.9.0.0/28", ["entry.created", "ipamclaim.created"]),
    (MAC, ["entry.created", "ipamclaim.created"]),
    ("02-00-00-00-00-01", ["entry.created", "ipamclaim.created"]),
    ("shop/web", ["entry.created", "ipamclaim.created"]),
    ("web", ["entry.created", "ipamclaim.created"]),
    ("web.net", ["ipamclaim.created"]),
    ("a", ["block.allocated", "released"]),
    ("acme", ["block.allocated", "released", "block.allocated"]),
    ("prod", ["block.allocated", "released"]),
    ("test", ["block.allocated"]),
    ("u-1", ["block.allocated", "released"]),
    ("blue", ["pool.created"]),
    ("shop-net", ["network.created"]),
    ("shop-pool", ["ippool.created"]),
    ("vms.csv", ["import.created"]),
    ("saturday", ["wave.created"]),
    ("nobody", []),
    ("10.8.0.1", []),
]


@pytest.mark.exhaustive
def test_one_box_finds_each_by_what_it_is(fleet: Any) -> None:
    assert [(text, boxed(text)) for text, _ in CASES] == CASES


def test_who_did_it(fleet: Any) -> None:
    assert len(boxed("tester")) == Event.objects.filter(actor="tester").count() > 3
    assert found_types(HistoryQuery(actor="tester", kind="pool")) == ["pool.created"]
    assert found_types(HistoryQuery(actor="mallory")) == []


def test_within_a_time(fleet: Any) -> None:
    now = database.now()
    late = HistoryQuery(org="acme", since=now - timedelta(minutes=1))
    early = HistoryQuery(org="acme", until=now - timedelta(minutes=1))
    assert found_types(late) == ["block.allocated"]
    assert found_types(early) == ["block.allocated", "released"]
    assert found_types(HistoryQuery(since=now + timedelta(minutes=1))) == []
    assert len(found_types(HistoryQuery(since=now - timedelta(hours=2)))) == Event.objects.count()


def test_all_that_is_given_must_hold(fleet: Any) -> None:
    assert found_types(HistoryQuery(org="acme", env="prod", holder="a")) == [
        "block.allocated",
        "released",
    ]
    assert found_types(HistoryQuery(org="acme", env="test", holder="a")) == []
    assert found_types(HistoryQuery(holder="a", holder_kind="node")) == []


def test_one_object(fleet: Any) -> None:
    Entry.objects.filter(pk=fleet.pk).update(vm="web-2")
    assert found_types(HistoryQuery(kind="entry", object_id=fleet.pk)) == [
        "entry.created",
        "entry.changed",
    ]


def test_one_cluster_also_when_it_is_gone(fleet: Any) -> None:
    other = factories.pool("10.0.0.0/32")
    factories.take(other)
    query = HistoryQuery(cluster_id=other.cluster_id, kind="block")
    assert found_types(query) == ["block.allocated"]
    cluster_id = fleet.ippool.cluster_id
    assert found_types(HistoryQuery(cluster_id=cluster_id, mac=MAC)) == [
        "entry.created",
        "ipamclaim.created",
    ]
    assert found_types(HistoryQuery(cluster_id=other.cluster_id, mac=MAC)) == []


@pytest.mark.sample(2)
def test_pages_go_on_where_the_last_one_ended(fleet: Any) -> None:
    all_of_them = search.search(search.queries_of_text("acme")).events
    below, collected = None, []
    for _ in range(9):
        page = search.search(search.queries_of_text("acme"), below=below, limit=1)
        collected += page.events
        below = page.below
        if below is None:
            break
    assert collected == all_of_them


def test_time_is_over_before_all_was_seen(fleet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not looked through is told, and nothing is left out by going on."""
    monkeypatch.setattr(search, "TIME_LIMIT", -1)
    monkeypatch.setattr("pools.platform.history.event_numbers._SLICE", 1)
    below, collected = None, []
    for _ in range(1000):
        page = search.search([HistoryQuery(holder_kind="vm", kind="block")], below=below)
        collected += page.events
        below = page.below
        if below is None:
            break
    assert len(collected) == 3


def test_of_a_pool_that_is_gone(clock) -> None:
    pool = factories.pool("10.0.0.0/32", name="old")
    block = factories.take(pool, factories.holder("a"))
    clock.advance(10)
    factories.give_back(block)
    pools.delete(pool.pk, author=factories.BY)
    assert boxed("old") == ["pool.created", "pool.deleted"]
    assert "released" in boxed("10.0.0.0")


@pytest.mark.parametrize(
    ("kind", "criterion", "index"),
    [
        ("block", "actor", "block_event_actor"),
        ("block", "org", "block_event_org"),
        ("block", "env", "block_event_env"),
        ("block", "uid", "block_event_holder_uid"),
        ("block", "holder", "block_event_holder"),
        ("failure", "actor", "failure_event_actor"),
        ("environment", "org", "environment_event_org"),
        ("entry", "actor", "entry_event_actor"),
        ("ipamclaim", "actor", "ipamclaim_event_actor"),
        ("ipamclaim", "uid", "ipamclaim_event_vm_uid"),
    ],
)
def test_an_index_of_a_large_table_finds_the_events(kind: str, criterion: str, index: str) -> None:
    (searcher,) = (searcher for searcher in search.SEARCHERS if searcher.kind == kind)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    rows = search._table_numbers(searcher, HistoryQuery(**{criterion: "x"}), None)
    assert f" {index} " in rows.order_by().explain()


# --- Rule `every-change-has-an-event`: every token that is created or revoked leaves an event with
# both names
def _events() -> list[tuple[str, str, str]]:
    rows = Event.objects.filter(table="tokenevent").order_by("id")
    return [(row.type, row.holder_id, row.actor) for row in rows]


@pytest.fixture
def manager() -> Any:
    person = people.user(people.ADMINISTRATOR)
    names = ("add_authtoken", "view_authtoken", "delete_authtoken", "delete_user", "view_user")
    person.user_permissions.add(*Permission.objects.filter(codename__in=names))
    return person


def test_a_token_for_somebody_else_in_the_admin(manager: Any) -> None:
    other = people.user(people.VIEWER)
    browser = people.signed_in(manager)
    form = {"user": other.pk, "days": 7, "level": "read"}
    page = browser.post(reverse("admin:knox_authtoken_create"), form)
    assert _events() == [("token.created", other.username, manager.username)]
    token = AuthToken.objects.get()
    assert page.context["token"]
    stored = str(list(TokenEvent.objects.values()) + list(Event.objects.values()))
    assert page.context["token"] not in stored
    assert token.digest not in stored
    data = {"action": "revoke", "_selected_action": [token.pk], "_confirmed": "1"}
    browser.post(reverse("admin:knox_authtoken_changelist"), data)
    assert not AuthToken.objects.exists()
    assert _events()[1:] == [("token.revoked", other.username, manager.username)]
    event = Event.objects.get(type="token.revoked")
    shown = browser.get(reverse("admin:pools_event_change", args=[event.pk])).text
    assert "API token revoked" in shown
    assert other.username in shown


def test_the_command_and_what_goes_with_a_user(manager: Any) -> None:
    other = people.user(people.VIEWER)
    name = other.username
    call_command("token", name, verbosity=0)
    assert _events() == [("token.created", name, "manage.py")]
    browser = people.signed_in(manager)
    browser.post(reverse("admin:auth_user_delete", args=[other.pk]), {"post": "yes"})
    assert _events()[1:] == [("token.revoked", name, manager.username)]


def test_tokens_that_are_written_past_the_services() -> None:
    other = people.user()
    AuthToken.objects.create(other)
    AuthToken.objects.update(expiry=None)
    AuthToken.objects.all().delete()
    types = [("token.created", ""), ("token.changed", ""), ("token.revoked", "")]
    assert [(kind, actor) for kind, owner, actor in _events() if owner == other.username] == types
