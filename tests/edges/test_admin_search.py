"""A search box understands an address, a CIDR, a holder and an environment."""

import pytest
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.html import strip_tags

from pools.models import ObservedObject
from pools.platform import search_text
from tests import factories, people


@pytest.mark.parametrize(
    ("text", "network", "hint"),
    [
        ("10.0.0.5", "10.0.0.5/32", False),
        (" 10.0.0.5\t", "10.0.0.5/32", False),
        ("::ffff:10.0.0.5", "10.0.0.5/32", False),
        ("2001:DB8::1", "2001:db8::1/128", False),
        ("10.0.0.0/24", "10.0.0.0/24", False),
        ("0.0.0.0/0", "0.0.0.0/0", False),
        ("10.0.0.7/24", "10.0.0.0/24", True),
        ("10.0.0.0/33", None, True),
        ("010.0.0.1", None, True),
        ("10.20.5", "10.20.5.0/24", False),
        ("10.20.", "10.20.0.0/16", False),
        ("10", None, False),
        ("10.20.256", None, True),
        ("fe80::1%eth0", None, True),
        ("i-1", None, False),
        ("", None, False),
        ("' OR 1=1 --", None, False),
        ("a\x00b", None, False),
        ("x" * 5000, None, False),
    ],
)
def test_what_is_read(text: str, network: str | None, hint: bool) -> None:
    result = search_text.parse(text)
    assert (str(result.network) if result.network else None, bool(result.hint)) == (network, hint)


@pytest.mark.sample(16)
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "cidrs"),
    [
        ("10.20.1.7", ["10.20.1.0/24"]),
        ("10.20.1.0/24", ["10.20.1.0/24"]),
        ("10.20.1.64/26", ["10.20.1.0/24"]),
        ("10.20.0.0/23", ["10.20.0.0/24", "10.20.1.0/24"]),
        ("0.0.0.0/0", ["10.20.0.0/24", "10.20.1.0/24", "10.9.0.1/32"]),
        ("10.20.7.1", []),
        ("::/0", []),
        ("node-1", ["10.20.0.0/24"]),
        ("node-", ["10.20.0.0/24", "10.20.1.0/24"]),
        ("de-", ["10.20.0.0/24", "10.20.1.0/24"]),
        ("NODE-1", ["10.20.0.0/24"]),
        ("node node-1", ["10.20.0.0/24"]),
        ("0.9.0", ["10.9.0.1/32"]),
        ("10.20.1", ["10.20.1.0/24"]),
        ("env-a", ["10.9.0.1/32"]),
        ("%", []),
        ("nobody", []),
    ],
)
def test_the_list_of_blocks_finds(text: str, cidrs: list[str]) -> None:
    cluster = factories.cluster()
    pods = factories.pool("10.20.0.0/16", mask=24, within=cluster)
    hosts = factories.pool("10.9.0.0/24", within=cluster)
    for name in ("node-1", "node-2"):
        factories.take(pods, factories.holder(name, kind="node"))
    factories.take(hosts, factories.holder("vm-1"), env="env-a")
    url = reverse("admin:pools_block_changelist", query={"q": text})
    result_list = people.browser().get(url).context["cl"].result_list
    assert sorted(str(block.cidr) for block in result_list) == cidrs


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_find_tells_everything_of_an_address() -> None:
    pool = factories.pool("10.0.0.0/24", reserved=["10.0.0.9-10.0.0.9"], cooldown=0)
    factories.give_back(factories.take(pool, factories.holder("vm-before")))
    factories.take(pool, factories.holder("vm-now"), org="acme", env="shop", cidr="10.0.0.1/32")
    client = people.browser()

    def find_page(text: str) -> str:
        return client.get(reverse("admin:find", query={"q": text})).content.decode()

    page = find_page("10.0.0.1")
    for part in ("vm-now", "vm-before", "acme/shop", str(pool), "10.0.0.2"):
        assert part in page, part
    assert "reserved" in find_page("10.0.0.9")
    assert "No results for 10.9.9.9" in find_page("10.9.9.9")
    before = find_page("vm-before")
    assert "Allocation history" in before
    assert 'class="cad-time"' in before
    assert pool.name in find_page(pool.name)
    assert "host bits ignored" in find_page("10.0.0.7/24")


def found(text: str, title: str) -> list[str]:
    """The names in a table of Find."""
    page = people.browser().get(reverse("admin:find", query={"q": text}))
    return sorted(
        strip_tags(row[0])
        for section in page.context["sections"]
        for table in section.context.get("tables", ())
        if table.title == title
        for row in table.rows
    )


@pytest.mark.sample(6)
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node-fra-1", ["Node node-fra-1"]),
        ("fra", ["Node node-fra-1", "Node node-fra-2"]),
        ("NODE-fra", ["Node node-fra-1", "Node node-fra-2"]),
        ("team/policy", ["IPPool team/policy-team"]),
        ("%", []),
        ("n", []),
    ],
)
def test_find_shows_cluster_objects_by_a_part_of_their_name(text: str, names: list[str]) -> None:
    cluster = factories.cluster()
    for namespace, name in (("", "node-fra-1"), ("", "node-fra-2"), ("team", "policy-team")):
        kind = "Node" if not namespace else "IPPool"
        ObservedObject.objects.create(
            cluster=cluster,
            kind=kind,
            namespace=namespace,
            name=name,
            uid=name,
            manifest={},
            first_seen_at=Now(),
            changed_at=Now(),
        )
    assert found(text, "Cluster objects") == names


@pytest.mark.sample(9)
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop", ["acme/shop"]),
        ("acme", ["acme/shop", "acme/web"]),
        ("cm", ["acme/shop", "acme/web"]),
        ("Acm", ["acme/shop", "acme/web"]),
        ("acme/sh", ["acme/shop"]),
        ("sh", ["acme/shop", "big/bushes"]),
        ("_h", []),
    ],
)
def test_find_shows_environments_by_a_part_of_their_name(text: str, expected: list[str]) -> None:
    pool = factories.pool("10.0.0.0/24")
    for org, env in (("acme", "shop"), ("acme", "web"), ("big", "bushes")):
        factories.take(pool, factories.holder(f"{org}-{env}"), org=org, env=env)
    assert found(text, "Environments") == expected


@pytest.mark.django_db
def test_the_whole_name_comes_first() -> None:
    cluster = factories.cluster()
    for number in range(60):
        factories.pool(f"10.{number}.0.0/24", within=cluster, name=f"pool-1{number}")
    factories.pool("10.99.0.0/24", within=cluster, name="pool-1")
    page = people.browser().get(reverse("admin:find", query={"q": "pool-1"}))
    (table,) = (
        table
        for section in page.context["sections"]
        for table in section.context.get("tables", ())
        if table.title == "Pools"
    )
    assert strip_tags(table.rows[0][0]) == f"{cluster.name}/pool-1"
    assert table.more.endswith("/admin/pools/pool/?q=pool-1")


@pytest.mark.django_db
def test_find_leads_to_the_history_at_a_time() -> None:
    factories.take(factories.pool("10.0.0.0/24"), cidr="10.0.0.1/32")
    client = people.browser()
    page = client.get(reverse("admin:find", query={"q": "10.0.0.1"})).content.decode()
    assert "/admin/history/?q=10.0.0.1" in page
    answer = client.get(reverse("admin:find", query={"q": "10.0.0.1", "at": "2026-05-05"}))
    assert answer.headers["Location"] == "/admin/history/?q=10.0.0.1&at=2026-05-05"
