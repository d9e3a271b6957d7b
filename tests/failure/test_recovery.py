"""Recovery mode: no block gets a new holder, by any door, until somebody or the clusters end it."""

import json
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from pools.clusters import recovery_mode
from pools.core import errors
from pools.models import Block, BlockState, Recovery
from pools.platform import database, events
from pools.platform.rest import token_scopes
from pools.register.allocator import allocation, requests
from tests import commands, factories
from tests.claims import worlds
from tests.edges import api as apis

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("committed")]
BY = events.Author(actor="ann", source="command", reason="restored Monday's backup")


def _refused_with(statement: str, *values: object) -> str:
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        database.rows(statement, values)
    return database.sqlstate(caught.value)


_TAKE = """
    UPDATE pools_block SET state = 'held', holder_kind = 'vm', holder_id = 'x', allocated_at = now(),
        available_from = NULL WHERE state = 'available' RETURNING id
"""
_MOVE = "UPDATE pools_block SET holder_id = 'thief' WHERE state = 'held' RETURNING id"


def test_nothing_is_handed_out_and_what_is_held_can_be_released() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=60)
    before = factories.take(pool, factories.holder("before"))
    recovery_mode.begin(author=BY)
    with pytest.raises(errors.Recovering):
        factories.take(pool)
    with pytest.raises(errors.Recovering):
        factories.ask(pool, *factories.holders(3))
    with pytest.raises(errors.Recovering):
        factories.take(pool, cidr="10.0.0.77/32")
    assert _refused_with(_TAKE) == database.RECOVERING
    assert _refused_with(_MOVE) == database.RECOVERING
    assert factories.give_back(before).block["state"] == "cooling"
    recovery_mode.end(author=BY, force=True)
    assert factories.take(pool)


def test_triggers_switched_on_after_a_load_of_data_stop_nobody() -> None:
    pool = factories.pool("10.0.0.0/24")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_block ENABLE TRIGGER USER")
    assert factories.take(pool)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")
    recovery_mode.begin(author=BY)
    with pytest.raises(errors.Recovering):
        factories.take(pool)


def test_who_has_a_block_of_a_single_category_is_told_which() -> None:
    cluster = factories.cluster(cluster_prefix=ip_network(apis.PREFIX))
    pool = cluster.pools.get(category="node")
    node = factories.holder("n1", kind="node")
    had = factories.take(pool, node)
    recovery_mode.begin(author=BY)
    assert factories.take(pool, node)["cidr"] == had["cidr"]


def test_rest_answers_503_and_says_which_clusters_are_waited_for() -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/24")
    recovery_mode.begin(author=BY)
    answer = api("POST", f"pools/{pool}/allocations/", apis.holder("a"))
    problem = apis.refused(answer, 503, "ipam_recovering")
    assert int(answer.headers["Retry-After"]) >= 1
    assert problem["clusters"] == []


def test_a_limited_token_is_not_told_the_names_of_other_clusters() -> None:
    api = apis.Api()
    api.cluster()
    pool = api.vm_pool("10.0.0.0/24")
    for name in ("prod", "other"):
        worlds.bound(worlds.cluster(name), "alpha", "vera")
    recovery_mode.begin(author=BY)
    path, body = f"pools/{pool}/allocations/", apis.holder("a")
    refusal = apis.refused(api("POST", path, body), 503, "ipam_recovering")
    assert refusal["clusters"] == ["other", "prod"]
    text = token_scopes.create_token(api.user, subject=token_scopes.parse_subject("prod"))
    api.client = Client(headers={"Authorization": f"Token {text}"})
    limited = apis.refused(api("POST", path, body), 503, "ipam_recovering")
    assert "other" not in json.dumps(limited)


def test_pending_requests_wait_and_are_served_after() -> None:
    pool = factories.pool("10.0.0.1/32", cooldown=0)
    held = factories.take(pool)
    request = requests.allocate(pool.pk, factories.demand(), author=factories.BY, wait=True)
    recovery_mode.begin(author=BY)
    factories.give_back(held)
    assert requests.retry() == 0
    assert not isinstance(request, allocation.Allocation)
    request.refresh_from_db()
    assert request.state == "pending"
    recovery_mode.end(author=BY, force=True)
    assert requests.retry() == 1


def test_cooldowns_go_on_from_where_the_backup_left_them() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    block = factories.take(pool)
    factories.give_back(block)
    before = Block.objects.get(pk=block["id"]).available_from
    recovery_mode.begin(author=BY, lost=timedelta(hours=2))
    row = Block.objects.get(pk=block["id"])
    assert (row.state, row.available_from) == (BlockState.COOLING, before + timedelta(hours=2))


def test_only_a_person_ends_it_where_no_cluster_is_connected() -> None:
    recovery_mode.begin(author=BY)
    assert not recovery_mode.end_when_listed()
    with pytest.raises(errors.Conflict):
        recovery_mode.begin(author=BY)
    with pytest.raises(errors.InvalidInput):
        recovery_mode.end(author=events.Author("ann", "command"), force=True)
    assert recovery_mode.end(author=BY).ended_by == "ann"
    with pytest.raises(errors.Conflict):
        recovery_mode.end(author=BY)


def test_the_commands() -> None:
    pool = factories.pool("10.0.0.0/24", cooldown=3600)
    cooling = factories.take(pool)
    factories.give_back(cooling)
    _command("begin", "--reason=restored", "--restored")
    assert json.loads(_command("status", "-o=json", status=3))[0]["active"] is True
    for cidr in ("10.0.0.200", cooling["cidr"]):
        _command("hold", cidr, "vm/known", f"--cluster={pool.cluster}", f"--pool={pool.name}",
                 "--reason=it answers")  # fmt: skip
    held = Block.objects.filter(state=BlockState.HELD).values_list("holder_id", flat=True)
    assert list(held) == ["known", "known"]
    _command("end")
    assert json.loads(_command("status", "-o=json"))[0]["active"] is False
    assert Recovery.objects.get().reason == "restored"


def _command(*arguments: str, status: int = 0) -> str:
    ended, text = commands.status_and_output("ipam", "recovery", *arguments)
    assert ended == status
    return text
