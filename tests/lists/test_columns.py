"""Every user chooses the columns of a list and their order; exports stay as they are."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pools.models import ListColumns, Pool
from tests import factories, people

BLOCKS = reverse("admin:pools_block_changelist")
DEFAULT = ["cidr", "holder", "state", "since", "available_from", "pool", "cluster", "org", "env"]


@pytest.fixture
def pool() -> Pool:
    pool = factories.pool("10.0.0.0/24")
    factories.cidrs(pool, 3)
    return pool


def choose(client: Client, *columns: str, label: str = "pools.block", **more: str) -> Any:
    url = reverse("admin:list_columns", args=[label])
    return client.post(url, {"column": columns, **more})


def shown(client: Client, url: str = BLOCKS) -> list[str]:
    columns = client.get(url).context["cl"].list_display
    names = [column if isinstance(column, str) else column.__name__ for column in columns]
    return [name for name in names if name != "action_checkbox"]


def test_a_user_chooses_columns_and_their_order(pool: Pool) -> None:
    client, other = people.browser(), people.browser()
    assert shown(client) == DEFAULT
    assert choose(client, "state", "holder_uid", "cidr").url == BLOCKS
    assert shown(client) == ["state", "holder_uid", "cidr"]
    assert shown(other) == DEFAULT
    choose(client, "cidr", "state")
    assert shown(client) == ["cidr", "state"]
    choose(client, "cidr", _reset="1")
    assert shown(client) == DEFAULT


def test_chosen_columns_can_be_sorted(pool: Pool) -> None:
    client = people.browser()
    choose(client, "state", "cidr")
    rows = client.get(f"{BLOCKS}?o=-2").context["cl"].result_list
    assert [str(row.cidr) for row in rows] == ["10.0.0.3/32", "10.0.0.2/32", "10.0.0.1/32"]


def test_names_that_the_list_does_not_have_are_ignored(pool: Pool) -> None:
    client = people.browser()
    choose(client, "state", "nothing", "state", "password", "\0")
    assert shown(client) == ["state"]
    ListColumns.objects.update(columns=["gone", "cidr"])
    assert shown(client) == ["cidr"]
    ListColumns.objects.update(columns=["gone"])
    assert shown(client) == DEFAULT


@pytest.mark.parametrize("columns", [(), ("nothing",)])
def test_a_choice_without_a_column_is_refused(pool: Pool, columns: tuple[str, ...]) -> None:
    client = people.browser()
    choose(client, "state")
    answer = choose(client, *columns)
    assert "Choose at least one column." in client.get(answer.url).content.decode()
    assert shown(client) == ["state"]
    with pytest.raises(IntegrityError), transaction.atomic():
        ListColumns.objects.update(columns=[])


def test_the_list_keeps_its_filters_and_the_export_its_columns(pool: Pool) -> None:
    client = people.browser()
    answer = choose(client, "state", query="state=held&q=a&o=1&bad=1")
    assert answer.url == f"{BLOCKS}?q=a&state=held"
    head = b"".join(client.get(f"{BLOCKS}export/")).splitlines()[0].decode()  # type: ignore[arg-type]
    assert head.startswith("cidr,holder_kind,holder_id,holder_uid,state")


def test_a_choice_costs_one_statement(pool: Pool) -> None:
    client = people.browser()
    choose(client, "cidr", "state")
    with CaptureQueriesContext(connection) as queries:
        client.get(BLOCKS)
    assert sum("pools_listcolumns" in query["sql"] for query in queries) == 1


def test_only_a_list_that_the_user_sees_has_columns(pool: Pool) -> None:
    client = people.browser(["view_pool"])
    assert choose(client, "state").status_code == 403
    for label in ("pools.nothing", "auth.user", "pools.freespan", "x", "pools.Block"):
        assert choose(people.browser(), "state", label=label).status_code == 404
    assert not ListColumns.objects.exists()


def test_every_further_column_has_a_cell(pool: Pool) -> None:
    client = people.browser()
    further = ["holder_uid", "allocated_at", "released_at", "withheld"]
    choose(client, *further)
    assert shown(client) == further
    pools = reverse("admin:pools_pool_changelist")
    choose(client, "description", "space", "cooldown", "created_at", label="pools.pool")
    assert shown(client, f"{pools}?o=4") == ["description", "space", "cooldown", "created_at"]
    clusters = reverse("admin:pools_cluster_changelist")
    choose(client, "instance_mtu", "name", label="pools.cluster")
    assert shown(client, clusters) == ["instance_mtu", "name"]
