"""One prefix in several clusters or VRFs: a row that does not say which is asked, and nobody gets its address meanwhile."""

import pytest

from pools.models import Block, Cluster, Pool
from pools.register import clusters
from pools.register.imports import drafts
from tests import factories, people
from tests.edges import api as apis
from tests.register_imports import sources
from tests.register_imports.sources import codes, counts, rows_of, table

pytestmark = pytest.mark.django_db(transaction=True)

NET = "192.168.50.0/29"
PREFIXES = table(("prefix", "site"), [(NET, "Berlin"), (NET, "Madrid")])
HOSTS = table(
    ("address", "dns_name"), [("192.168.50.2", "a.madrid"), ("192.168.50.2", "a.berlin"), ("192.168.50.3", "b")]
)  # fmt: skip
ASKED = "ambiguous_cluster"


@pytest.fixture
def sites() -> dict[str, Cluster]:
    return {site: factories.cluster() for site in ("", "Berlin", "Madrid")}


def draft(sites: dict[str, Cluster], *files: bytes) -> drafts.RegisterImport:
    mapping = {"site": {site: cluster.pk for site, cluster in sites.items() if site}}
    return sources.draft(*files, cluster=sites[""], mapping=mapping)


def test_an_address_without_a_site_is_asked_and_withheld(sites: dict[str, Cluster]) -> None:
    made = draft(sites, PREFIXES, HOSTS)
    assert [code for _line, status, code in codes(made) if status == "conflict"] == [ASKED] * 3
    sources.commit(made, skip_bad=True)
    assert not Block.objects.filter(state="held").exists()
    for pool in Pool.objects.all():
        assert not {"192.168.50.2/32", "192.168.50.3/32"} & {*factories.drain(pool)}


def test_the_cluster_is_chosen_for_one_row_or_for_all_alike(sites: dict[str, Cluster]) -> None:
    made, api = draft(sites, PREFIXES, HOSTS), apis.Api()
    berlin, madrid = sites["Berlin"].name, sites["Madrid"].name
    path = f"imports/{made.pk}/rows/"
    row = api("GET", f"{path}3/").json()
    assert (row["candidates"], row["reasons"][0]["code"]) == ([berlin, madrid], ASKED)
    assert api("PATCH", f"{path}3/", {"cluster": madrid}).json()["cluster"] == madrid
    assert api("PATCH", f"{path}4/", {"cluster": berlin, "alike": True}).status_code == 200
    rows = api("GET", path).json()["results"]
    assert [(row["cluster"], row["pool"], row["status"]) for row in rows[2:]] == [
        (madrid, "192.168.50.0-29", "new"),
        (berlin, "192.168.50.0-29", "new"),
        (berlin, "192.168.50.0-29", "new"),
    ]


def test_a_removed_cluster_refuses_the_rows_of_its_site(sites: dict[str, Cluster]) -> None:
    made = draft(sites, PREFIXES, table(("address", "site"), [("192.168.50.2", "Madrid")]))
    clusters.remove(sites["Madrid"], author=sources.BY)
    assert counts(drafts.IMPORTS.revalidate(made.pk, author=sources.BY)) == {"new": 2, "invalid": 2}
    assert {code for *_, code in codes(made)} == {"unknown_cluster", "left_out"}
    sources.commit(made, skip_bad=True)
    assert "192.168.50.2/32" not in factories.drain(Pool.objects.get())


def test_the_page_asks(sites: dict[str, Cluster]) -> None:
    made = draft(sites, PREFIXES, HOSTS)
    browser, url = people.browser(), f"/admin/pools/import/{made.pk}/change/"
    madrid = sites["Madrid"].name
    assert f'name="cluster" value="{madrid}"' in browser.get(url).content.decode()
    sent = {"action": "correct", "row": "3", "cluster": madrid, "alike": "yes"}
    assert browser.post(url, sent).status_code == 302
    statuses = [row.status for row in rows_of(made)]
    assert statuses == ["new", "new", "new", "conflict", "new"]  # two names of one address
    assert ASKED not in {code for _line, _status, code in codes(made)}


def test_a_row_that_says_its_site_is_not_asked(sites: dict[str, Cluster]) -> None:
    rows = [("192.168.50.2", "Madrid", "m"), ("192.168.50.2", "Berlin", "b")]
    made = draft(sites, PREFIXES, table(("address", "site", "holder"), rows))
    assert counts(made) == {"new": 4}
    assert [row.cluster_id for row in rows_of(made)[2:]] == [sites["Madrid"].pk, sites["Berlin"].pk]


def test_what_rest_answers_is_sent_back(sites: dict[str, Cluster]) -> None:
    made, api = draft(sites, PREFIXES), apis.Api()
    path = f"imports/{made.pk}/"
    mapping = api("GET", path).json()["mapping"]
    assert mapping == {"site": {site: sites[site].name for site in ("Berlin", "Madrid")}}
    assert api("PATCH", path, {"mapping": mapping}).json()["mapping"] == mapping
    assert api("PATCH", path, {"mapping": {"vrf": {}}}).json()["mapping"]["site"] == mapping["site"]
    emptied = api("PATCH", path, {"mapping": {"site": {}}}).json()["mapping"]
    assert emptied == {"vrf": {}, "site": {}}
    wrong = api("PATCH", path, {"mapping": {"site": {"Berlin": 4}}})
    assert apis.refused(wrong, 400, "wrong_type")["errors"][0]["field"] == "mapping.site.Berlin"
    body = {"name": "dc", "url": "https://n.example", "token": "t" * 40, "cluster": sites[""].name}
    source = api.create("netbox-sources/", {**body, "mapping": mapping})
    assert source["mapping"] == mapping


def test_an_address_that_several_have_by_its_role() -> None:
    rows = [("10.0.0.1", "vrrp", "r1"), ("10.0.0.1", "vrrp", "r2"), ("10.0.0.2", "", "a")]
    rows.append(("10.0.0.2", "", "b"))
    files = table(("prefix",), [("10.0.0.0/24",)]), table(("address", "role", "dns_name"), rows)
    made = sources.draft(*files)
    assert [row.status for row in rows_of(made)] == ["new", "new", "unchanged", "new", "conflict"]


VRFS = table(("prefix", "vrf"), [(NET, "blue"), (NET, "red"), ("10.0.0.0/24", "")])
IN_VRFS = table(("address", "vrf", "dns_name"), [
    ("192.168.50.2", "", "a"), ("192.168.50.3", "", "b"), ("192.168.50.4", "red", "c"), ("10.0.0.9", "", "d"),
    ("192.168.50.5", "Global", "e"),
])  # fmt: skip


def test_an_address_without_a_vrf_is_asked_and_withheld_in_each() -> None:
    made = sources.draft(VRFS, IN_VRFS)
    asked = [line for line, _status, code in codes(made) if code == "ambiguous_vrf"]
    statuses = [row.status for row in rows_of(made)[3:8]]
    assert (len(asked), statuses) == (2, ["conflict", "conflict", "new", "new", "invalid"])
    sources.commit(made, skip_bad=True)
    assert set(Block.objects.filter(state="held").values_list("holder_id", flat=True)) == {"c", "d"}
    for pool in Pool.objects.filter(space__name__in=["blue", "red"]):
        assert not {"192.168.50.2/32", "192.168.50.3/32"} & {*factories.drain(pool)}


def test_the_vrf_is_chosen_for_all_alike() -> None:
    made, api = sources.draft(VRFS, IN_VRFS), apis.Api()
    path = f"imports/{made.pk}/rows/"
    assert api("GET", f"{path}4/").json()["candidates"] == ["blue", "red"]
    assert api("PATCH", f"{path}4/", {"vrf": "red", "alike": True}).status_code == 200
    assert [row.space_name for row in rows_of(made)[3:6]] == ["red", "red", "red"]
    assert [row.status for row in rows_of(made)[3:6]] == ["new", "new", "new"]
