"""Forgetting a cluster: refused while it holds blocks, by force with a reason; history answers."""

from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection

from pools.models import AddressSpace, AllocationRequest, Block, Cluster, Environment, Pool
from tests import commands
from tests.edges import api as apis

FORCE = ("--force", "--reason", "the site burnt down")


@pytest.fixture
def api() -> apis.Api:
    """A cluster that holds two blocks, of which one cools, and lets a third holder wait."""
    api = apis.Api()
    api.cluster(cluster_prefix=apis.PREFIX)
    pool = api.vm_pool("10.0.0.0/31", cooldown=600)
    api.take(pool, "a", org="o", env="e")
    block = api.take(pool, "b")
    api("POST", f"blocks/{block['id']}/release/", apis.holder("b"))
    waits = apis.holder("c") | {"wait": True}
    assert api("POST", f"pools/{pool}/allocations/", waits).status_code == 202
    return api


def _run(*arguments: str) -> str:
    return commands.output("cluster", "remove", *arguments)


def _nothing_is_left() -> bool:
    models: list[Any] = [Cluster, AddressSpace, Pool, Block, Environment, AllocationRequest]
    return not any(model.objects.exists() for model in models)


def test_refused_while_it_holds_blocks(api: apis.Api) -> None:
    held = r"pool_in_use: The cluster prod has 2 held or cooling blocks: vm a \(10.0.0.0/32, held\)"
    with pytest.raises(CommandError, match=held):
        _run("prod")
    answer = api("DELETE", "clusters/prod/")
    assert "vm b (10.0.0.1/32, cooling)" in apis.refused(answer, 409, "pool_in_use")["detail"]
    assert (Pool.objects.count(), Block.objects.exclude(state="available").count()) == (3, 2)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["prod", "--force"], "blank"),
        (["prod", "--force", "--reason", " "], "blank"),
        (["prod", "--force", "--reason", "a\x1b"], "invisible_character"),
        (["nobody", *FORCE], "not_found"),
        (["Prod_1", *FORCE], "k8s_name"),
    ],
    ids=["no reason", "blank", "escape", "unknown", "name"],
)
@pytest.mark.usefixtures("api")
def test_by_force_with_a_reason_only(arguments: list[str], code: str) -> None:
    with pytest.raises(CommandError, match=code):
        _run(*arguments)
    assert Block.objects.filter(state="held").count() == 1


def test_an_empty_one_needs_no_force() -> None:
    apis.Api().cluster("empty", cluster_prefix=apis.PREFIX)
    assert "removed" in _run("empty")
    assert _nothing_is_left()


@pytest.mark.exhaustive
@pytest.mark.parametrize("door", ["command", "api"])
def test_by_force_it_goes_with_all_that_it_held(api: apis.Api, door: str) -> None:
    if door == "command":
        assert _run("prod", *FORCE) == "The cluster prod was removed.\n"
    else:
        answer = api("DELETE", "clusters/prod/?force=true&reason=the+site+burnt+down")
        assert answer.status_code == 204, answer.content
    assert _nothing_is_left()
    gone, held = (
        api("GET", f"events/?type={kind}").json()["results"][0]
        for kind in ("cluster.deleted", "reclaimed")
    )
    assert (gone["reason"], gone["cluster"]) == ("the site burnt down", "prod")
    assert (held["holder"]["id"], held["reason"]) == ("a", "the site burnt down")
    assert (held["cluster"], held["pool"]) == ("prod", "vms")


@pytest.mark.exhaustive
def test_history_answers_afterwards(api: apis.Api) -> None:
    before = api("GET", "addresses/10.0.0.0/?cluster=prod").json()
    since = before["matches"][0]["since"]
    with connection.cursor() as cursor:  # the removal comes later
        cursor.execute("SELECT set_config('ipam.clock_offset', '60 seconds', true)")
    _run("prod", *FORCE)
    for where in ("", "cluster=prod&"):
        document = api("GET", f"addresses/10.0.0.0/?{where}at={since}").json()
        (match,) = document["matches"]
        assert (match["cluster"], match["pool"], match["holder"]["id"]) == ("prod", "vms", "a")
        assert match["until"] is not None
        assert api("GET", f"addresses/10.0.0.0/?{where}").json()["matches"] == []
    apis.refused(api("GET", "addresses/10.0.0.0/?cluster=nobody"), 400, "unknown_cluster")
    api.cluster()  # another one of the same name has a history of its own
    assert api("GET", "addresses/10.0.0.0/?cluster=prod").json()["history"] == []
