"""Lists, Find, its field in the frame and the palette understand an address, a CIDR, a name and parts of them."""

from ipaddress import ip_network

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from claims.address_index import index
from claims.models import Entry, IPPool, Network
from pools.core.observed.uses import Role
from pools.models import ObservedObject
from pools.platform import search
from pools.register.plan import containers
from tests import factories, people
from tests.observed.rows import observed


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
        ("fe80::1%eth0", "fe80::1/128", False),
        ("10.0.0.5:443", "10.0.0.5/32", False),
        ("[2001:db8::1]", "2001:db8::1/128", False),
        ("https://[2001:db8::1]:6443/", "2001:db8::1/128", False),
        ("(10.0.0.5),", "10.0.0.5/32", False),
        ("10.0.0.5.", "10.0.0.5/32", False),
        ("300.0.0.5:443", None, True),
        ("10.20.*.*", "10.20.0.0/16", False),
        ("2001:db8:*", "2001:db8::/32", False),
        ("*", None, False),
        ("* *", None, False),
        ("i-1", None, False),
        ("", None, False),
        ("' OR 1=1 --", None, False),
        ("a\x00b", None, False),
        ("x" * 5000, None, False),
    ],
)
def test_what_is_read(text: str, network: str | None, hint: bool) -> None:
    result = search.parse(text)
    assert (str(result.network) if result.network else None, bool(result.hint)) == (network, hint)


@pytest.mark.sample(16)
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
        ("10.20.1.*", ["10.20.1.0/24"]),
        ("*de-*", ["10.20.0.0/24", "10.20.1.0/24"]),
        ("(10.20.1.7)", ["10.20.1.0/24"]),
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


def test_find_answers_all_of_a_text_or_says_why_not() -> None:
    """Only the kind before a name is left out: of two addresses neither is. One character is too short."""
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool, factories.holder("web"), cidr="10.0.0.1/32")
    client = people.browser()

    def find_page(text: str) -> str:
        return client.get(reverse("admin:find", query={"q": text})).content.decode()

    assert "No results for 10.0.0.2 10.0.0.1" in find_page("10.0.0.2 10.0.0.1")
    assert "No results" not in find_page("Host web")
    assert "Type at least two characters." in find_page("w")
    assert "Type at least" not in find_page("nobody")


def names_in_table(text: str, *titles: str) -> list[str]:
    """The names in tables of Find."""
    page = people.browser().get(reverse("admin:find", query={"q": text}))
    return sorted(
        strip_tags(row[0])
        for section in page.context["sections"]
        for table in section.context.get("tables", ())
        if table.title in titles
        for row in table.rows
    )


@pytest.mark.sample(6)
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
    assert names_in_table(text, "Cluster objects") == names


@pytest.mark.sample(9)
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
    assert names_in_table(text, "Environments") == expected


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


def test_find_leads_to_the_history_at_a_time() -> None:
    factories.take(factories.pool("10.0.0.0/24"), cidr="10.0.0.1/32")
    client = people.browser()
    page = client.get(reverse("admin:find", query={"q": "10.0.0.1"})).content.decode()
    assert "/admin/history/?q=10.0.0.1" in page
    answer = client.get(reverse("admin:find", query={"q": "10.0.0.1", "at": "2026-05-05"}))
    assert answer.headers["Location"] == "/admin/history/?q=10.0.0.1&at=2026-05-05"


def _find(client: Client, text: str) -> str:
    return client.get("/admin/find/", {"q": text}).content.decode()


def test_the_search_field_is_on_every_page_for_who_may_search() -> None:
    may, may_not = people.browser(["view_block"]), people.browser([])
    assert b'id="cad-search"' in may.get("/admin/").content
    assert b'id="cad-search"' not in may.get("/admin/find/").content
    assert b'name="q"' not in may.get("/admin/").content
    assert b'id="cad-search"' not in may_not.get("/admin/").content


@pytest.mark.exhaustive
def test_parts_of_names_and_macs_find_entries() -> None:
    cluster = factories.cluster()
    network = Network.objects.create(cluster=cluster, name="blue")
    ippool = IPPool.objects.create(cluster=cluster, network=network, name="blue")
    entry = Entry.objects.create(
        ippool=ippool,
        mac="02:aa:bb:00:00:01",
        ips=["10.0.0.1/24"],
        namespace="shop",
        vm="big-web-1",
    )
    index.write(entries=[entry])
    client = people.browser()
    parts = (
        "g-web",
        "shop/g-web",
        "G-WEB",
        "02:aa:bb",
        "02aa.bb00",
        "bb:00",
        "00-00-01",
        "bb00.0001",
        "aabb",
        "0.0.1",
    )
    for text in parts:
        assert "big-web-1" in _find(client, text), text
    assert "No results for" in _find(client, "other/g-web")


def _addresses(text: str) -> set[str]:
    """The addresses of the blocks and of the objects of clusters that Find has for a text."""
    return {name.split("/")[0] for name in names_in_table(text, "Blocks", "Observed CIDRs")}


@pytest.mark.exhaustive
def test_any_part_of_an_address_finds_it() -> None:
    pool = factories.pool("10.20.0.0/16", "2001:db8:10::/64")
    for number, text in enumerate(("10.20.3.7/32", "10.20.13.70/32", "2001:db8:10::beef/128")):
        factories.take(pool, factories.holder(f"vm-{number}"), cidr=text)
    observed(factories.cluster(), Role.NODE, "192.0.23.7/32")
    four, other, six, node = "10.20.3.7", "10.20.13.70", "2001:db8:10::beef", "192.0.23.7"
    for text, result in (
        ("20.3.7", {four}), (".3.7", {four}), ("3.7", {four, other, node}), ("0.13.", {other}), ("23.7", {node}),
        ("::beef", {six}), (":BEEF", {six}), ("beef", {six}), ("8:10::b", {six}), ("::bee", {six}), ("::bead", set()),
        ("20.3.70", set()), ("10.20.3.70", set()), ("2001:db8:10::bee", set()), ("10.20", {four, other}),
    ):  # fmt: skip
        assert _addresses(text) == result, text


def test_an_address_that_is_free_is_not_shown_as_a_longer_one() -> None:
    factories.take(factories.pool("2001:db8::/64"), cidr="2001:db8::10/128")
    page = people.browser().get("/admin/find/", {"q": "2001:db8::1"})
    assert [match.state for match in page.context["matches"]] == ["free"]
    assert _addresses("2001:db8::1") == set()
    assert _addresses("2001:db8::10") == {"2001:db8::10"}


def test_containers_are_found_by_name_and_address() -> None:
    containers.create(ip_network("10.0.0.0/8"), name="Data centres", author=factories.BY)
    client = people.browser()
    for text in ("centre", "10.1.2.3", "10.0.0.0/7"):
        assert "Data centres" in _find(client, text), text


def palette_links(client: Client, text: str) -> dict[str, str]:
    """The links of the palette by their titles."""
    answer = client.get("/admin/search/", {"s": text, "extended": "1"})
    assert answer.status_code == 200
    return {str(result.title): str(result.link) for result in answer.context["results"]}


def test_the_palette_has_objects_pages_and_actions() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    factories.take(pool, factories.holder("node-7", kind="node"), cidr="10.40.0.9/32")
    client = people.browser()
    page = f"/admin/pools/pool/{pool.pk}"
    assert palette_links(client, "blue")[str(pool)] == f"{page}/change/"
    assert palette_links(client, "lue-po")["Allocate from blue-pool"] == f"{page}/allocate/"
    assert palette_links(client, "allocate from blue-pool") == {
        "Allocate from blue-pool": f"{page}/allocate/"
    }
    assert "10.40.0.9/32" in palette_links(client, "node-7")
    assert (
        palette_links(client, "10.40.0.9")["Who held 10.40.0.9?"] == "/admin/history/?q=10.40.0.9"
    )
    at = palette_links(client, "who held 10.40.0.9 at 2026-05-05")
    assert [*at.values()] == ["/admin/history/?q=10.40.0.9&at=2026-05-05"]
    last_week = palette_links(client, "who held 10.40.0.9 last week")
    assert [*last_week.values()] == ["/admin/history/?q=10.40.0.9&at=last+week"]
    migrate = palette_links(client, "migrate 10.40.0.0/20")
    assert [*migrate.values()] == [f"{page}/migrations/?cidr=10.40.0.0%2F20"]
    assert palette_links(client, "import vms")["Import VMs"] == "/admin/pools/import/add/?kind=vm"
    assert palette_links(client, "address pl")["Address plan"] == "/admin/address-plan/"
    assert palette_links(client, "zz-no")["Find zz-no"] == "/admin/find/?q=zz-no"


def test_the_palette_shows_what_the_user_may_open() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    factories.take(pool, factories.holder("blue-vm"))
    client = people.browser(["view_block"])
    assert [*palette_links(client, "blue")] == ["10.40.0.1/32", "Find blue"]
    assert not palette_links(client, "allocate from blue-pool")
    assert "Users" not in palette_links(client, "users")
    assert not palette_links(people.browser([]), "blue")


def test_what_is_deleted_leaves_the_palette_at_once() -> None:
    pool = factories.pool("10.40.0.0/20", name="blue-pool")
    client = people.browser()
    assert str(pool) in palette_links(client, "blue-pool")
    pool.delete()
    assert str(pool) not in palette_links(client, "blue-pool")


def test_stars_and_blanks_alone_are_searched_for() -> None:
    browser = people.browser()
    for url in (reverse("admin:find"), reverse("admin:pools_block_changelist")):
        assert browser.get(url, {"q": "*  *"}).status_code == 200
