"""MAC entries and IPPools in the admin, and what VM owners request."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.entries import ippools
from claims.models import NAD, Entry, IPPool, Network
from tests import people
from tests.claims import worlds
from tests.edges.api import Api

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.fixture
def network() -> Network:
    created = worlds.network("prod-network")
    for namespace in ("shop", "bank"):
        NAD.objects.create(network=created, namespace=namespace, name="n")
    return created


@pytest.fixture
def owner(network: Network) -> Client:
    return people.signed_in(worlds.owner(network.cluster, "shop").user)


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    return " ".join(answer.content.decode().split())


def page(client: Client, name: str, *args: Any, **query: Any) -> str:
    return text(client.get(reverse(f"admin:claims_{name}", args=args), query))


def typed(ippool: IPPool, **more: str) -> dict[str, Any]:
    vm = {"vm": "web", "namespace": "shop"}
    return {"ippool": ippool.pk, "mac": A, "ips": "10.0.0.5"} | vm | more


def test_the_list_names_what_is_doubled(browser: Client, ippool: IPPool, network: Network) -> None:
    first = worlds.entry(ippool, A, "10.0.0.5/24", vm="web", namespace="shop")
    worlds.entry(ippool, A, "10.0.0.1/24")
    worlds.entry(ippool, C, "10.0.0.9/24", vm="db", namespace="shop")
    worlds.workload(network, "web", A, "10.0.0.7", namespace="shop")
    page_text = page(browser, "entry_changelist")
    assert page_text.count("duplicate MAC") >= 2
    assert "MAC entry of shop/web in prod-pool" in page_text
    assert "gateway 10.0.0.1" in page_text
    assert "shop/web runs with 10.0.0.7" in page_text
    only = page(browser, "entry_changelist", duplicate="ip")
    assert "10.0.0.1/24" in only
    assert reverse("admin:claims_entry_change", args=[first.pk]) in only
    assert C not in only


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("search", "is_listed"),
    [
        ("02-00-00-00-00-0B", True),
        ("0200.0000.000b", True),
        ("00:0b", True),
        ("10.0.0.6", True),
        ("10.0.0.6/24", True),
        ("10.0.0.4/30", True),
        ("vaul", True),
        ("bank/vault", True),
        ("shop", False),
        ("10.0.0.7", False),
    ],
)
def test_searching(browser: Client, ippool: IPPool, search: str, is_listed: bool) -> None:
    worlds.entry(ippool, B, "10.0.0.6/24", vm="vault", namespace="bank")
    assert (B in page(browser, "entry_changelist", q=search)) is is_listed


def test_adding_one_fills_in_the_prefix(browser: Client, ippool: IPPool) -> None:
    url = reverse("admin:claims_entry_add")
    worlds.entry(ippool, B, "10.0.0.5/24")
    answer = browser.post(url, typed(ippool, mac="2:0:0:0:0:a"), follow=True)
    entry = Entry.objects.get(mac=A)
    assert (entry.ips, entry.source) == (["10.0.0.5/24"], "hand")
    assert f"10.0.0.5 is a duplicate: also MAC entry of {B} in prod-pool." in text(answer)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"mac": "x"}, "Must be a MAC address"),
        ({"ips": "10.0.0.0/24"}, "is the address of the network"),
        ({"ips": "10.0.0.5/16"}, "did you mean 10.0.0.5/24?"),
        ({"ips": "10.9.0.5"}, "in none of the network&#x27;s subnets"),
        ({"vm": "A B"}, "a name is made of"),
    ],
)
def test_errors_stand_beside_their_field(
    browser: Client, ippool: IPPool, more: Any, says: str
) -> None:
    answer = browser.post(reverse("admin:claims_entry_add"), typed(ippool, **more))
    assert says.lower() in text(answer).lower()
    assert not Entry.objects.exists()


def test_changing_and_deleting(browser: Client, ippool: IPPool) -> None:
    entry = worlds.entry(ippool, A, "10.0.0.5/24", vm="web", namespace="shop")
    url = reverse("admin:claims_entry_change", args=[entry.pk])
    assert reverse("admin:claims_entry_check") in text(browser.get(url))
    browser.post(url, typed(ippool, ips="10.0.0.9/24", note="moved"))
    entry.refresh_from_db()
    assert (entry.ips, entry.note) == (["10.0.0.9/24"], "moved")
    gone = reverse("admin:claims_entry_delete", args=[entry.pk])
    question = text(browser.get(gone))
    assert "loses these addresses, and another VM can get them: 10.0.0.9/24." in question
    assert browser.post(gone).status_code == 302
    assert not Entry.objects.exists()


def test_what_is_told_while_somebody_types(
    browser: Client, ippool: IPPool, network: Network
) -> None:
    first = worlds.entry(ippool, A, "10.0.0.5/24", vm="web", namespace="shop")

    def checked_entry(**fields: Any) -> str:
        url = reverse("admin:claims_entry_check")
        return text(browser.get(url, {"ippool": ippool.pk, **fields}))

    shown = checked_entry(mac=A.upper(), ips="10.0.0.6")
    assert f"▲ {A} is a duplicate: also <a" in shown
    assert f'href="{reverse("admin:claims_entry_change", args=[first.pk])}"' in shown
    assert "cad-error" not in shown
    assert checked_entry(mac=A, ips="10.0.0.5", entry=first.pk) == ""
    assert "cad-error" in checked_entry(mac="02:00", ips="")
    shown = checked_entry(**{"new0-mac": C, "new0-ips": "10.0.0.1, 10.0.0.5"})
    assert "gateway 10.0.0.1" in shown
    assert "MAC entry of shop/web in prod-pool" in shown
    assert "at most one of each family" in shown
    assert checked_entry(mac="", ips="10.0.0.9") == ""
    assert checked_entry(ippool="x", mac=A) == ""


def test_an_ippool_is_made_and_shown(browser: Client, network: Network) -> None:
    url = reverse("admin:claims_ippool_add")
    form_data = {"cluster": network.cluster_id, "name": "prod-pool", "network_name": "prod-network"}
    assert browser.post(url, form_data).status_code == 302
    again = text(browser.post(url, {**form_data, "name": "second"}))
    assert "already has an IPPool: prod-pool" in again
    ip_pool = IPPool.objects.get()
    worlds.entry(ip_pool, A, "10.0.0.5/24")
    worlds.entry(ip_pool, A, "10.0.0.6/24")
    ippools.update_conditions(IPPool.objects.get())
    page_text = page(browser, "ippool_change", ip_pool.pk)
    assert "MAC addresses appear more than once" in page_text
    assert "DuplicateMACFound" in page_text
    assert "also <a" in page_text
    assert "network-name: prod-network" in page_text
    assert f"/api/v1/ippools/{ip_pool.pk}/entries/" in page_text
    listed = page(browser, "ippool_changelist", duplicate="yes")
    assert "1 MAC" in listed


@pytest.mark.exhaustive
def test_rows_are_changed_where_they_stand(browser: Client, ippool: IPPool) -> None:
    first = worlds.entry(ippool, A, "10.0.0.5/24", vm="web", namespace="shop")
    second = worlds.entry(ippool, B, "10.0.0.6/24")
    url = reverse("admin:claims_ippool_entries", args=[ippool.pk])
    assert text(browser.get(url)).count("data-told") == 5
    rows = {
        f"{first.pk}": (A, "10.0.0.7", "web", "shop", "moved"),
        f"{second.pk}": (B, "10.0.0.6/24", "", "", ""),
        "new0": (C, "10.0.0.8", "db", "shop", ""),
        "new1": ("", "", "", "", ""),
    }
    posted = {
        f"{prefix}-{name}": value
        for prefix, values in rows.items()
        for name, value in zip(("mac", "ips", "vm", "namespace", "note"), values, strict=True)
    }
    bad = text(browser.post(url, posted | {f"{first.pk}-ips": "10.0.0.0/24"}))
    assert "Not saved" in bad
    assert Entry.objects.count() == 2
    assert browser.post(url, posted | {f"{second.pk}-remove": "on"}).status_code == 302
    result = Entry.objects.order_by("mac").values_list("mac", "ips", "note")
    assert list(result) == [(A, ["10.0.0.7/24"], "moved"), (C, ["10.0.0.8/24"], "")]
    assert A in text(browser.get(url, {"q": "web"}))
    assert A not in text(browser.get(url, {"duplicate": "1"}))


@pytest.mark.exhaustive
def test_a_vm_owner_asks_for_addresses_and_sees_their_own(owner: Client, ippool: IPPool) -> None:
    foreign = worlds.entry(ippool, B, "10.0.0.6/24", vm="vault", namespace="bank")
    url = reverse("admin:claims_entry_add")
    assert "Request address" in text(owner.get(url))
    assert "10.0.0.6 is already in use" in text(owner.post(url, typed(ippool, ips="10.0.0.6")))
    assert owner.post(url, typed(ippool)).status_code == 302
    entry = Entry.objects.get(mac=A)
    assert entry.source == "request"
    lists = [("entry_changelist",), ("ippool_changelist",)]
    for place in (*lists, ("ippool_change", ippool.pk), ("entry_change", entry.pk)):
        shown = page(owner, *place)
        assert "vault" not in shown
        assert B not in shown
    check = reverse("admin:claims_entry_check")
    warnings = text(owner.get(check, {"ippool": ippool.pk, "mac": B, "ips": "10.0.0.6"}))
    assert "is a duplicate: also another owner" in warnings
    assert "vault" not in warnings
    assert "<a" not in warnings
    foreign_url = reverse("admin:claims_entry_change", args=[foreign.pk])
    assert owner.get(foreign_url).status_code == 404
    for name in ("ippool_entries", "ippool_edit", "ippool_delete"):
        assert owner.get(reverse(f"admin:claims_{name}", args=[ippool.pk])).status_code == 403
    assert owner.post(reverse("admin:claims_entry_delete", args=[entry.pk])).status_code == 302
    assert not Entry.objects.filter(mac=A).exists()


def test_one_badge_counts_duplicates_and_conflicts(browser: Client, ippool: IPPool) -> None:
    """The list and the page of an IPPool say the same number, of whatever contradicts an entry."""
    worlds.entry(ippool, A, "10.0.0.5/24")
    worlds.entry(ippool, A, "10.0.0.6/24")
    worlds.entry(ippool, B, "10.0.0.1/24")  # the gateway's
    worlds.claim(ippool.network, "db", "10.0.0.6/24", namespace="shop", mac=C)
    ippools.update_conditions(IPPool.objects.get())
    page_text = page(browser, "ippool_change", ippool.pk)
    listed = page(browser, "ippool_changelist")
    for words in ("1 MAC</a>", "2 IPs</a>"):
        assert page_text.count(words) == listed.count(words) == 1, words
    assert "Duplicates and conflicts" in page_text


@pytest.mark.parametrize("kind", ["network", "ippool"])
def test_a_page_has_one_history(browser: Client, ippool: IPPool, kind: str) -> None:
    object_pk = ippool.network_id if kind == "network" else ippool.pk
    url = reverse("admin:history")
    page_text = text(browser.get(reverse(f"admin:claims_{kind}_change", args=[object_pk])))
    assert page_text.count(">History</a>") == 1
    assert f'href="{url}?kind={kind}&amp;object={object_pk}"' in page_text


# --- VM owners ask for addresses of their own VMs, and learn nothing of others' -------------------
@pytest.fixture
def foreign(ippool: IPPool) -> Entry:
    return worlds.entry(ippool, B, "10.0.0.6/24", vm="vault", namespace="bank")


@pytest.fixture
def api(network: Network) -> Api:
    return worlds.owner(network.cluster, "shop")


def entries_path(parent: IPPool) -> str:
    return f"ippools/{parent.pk}/entries/"


def asking(**more: Any) -> dict[str, Any]:
    return {"mac": A, "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"} | more


def test_a_request_for_an_own_vm(api: Api, ippool: IPPool, foreign: Entry) -> None:
    document = api.create(entries_path(ippool), asking())
    assert (document["source"], document["duplicates"]) == ("request", [])
    listed = api("GET", entries_path(ippool)).json()["results"]
    assert [item["vm"] for item in listed] == ["web"]
    assert api("DELETE", f"{entries_path(ippool)}{document['id']}/").status_code == 204


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"namespace": "bank"}, 403, "permission_denied"),
        ({"namespace": "nowhere"}, 403, "permission_denied"),
        ({"namespace": ""}, 400, "required"),
        ({"vm": ""}, 400, "required"),
        ({"ips": ["10.0.0.6/24"]}, 409, "already_allocated"),
        ({"mac": B}, 409, "already_allocated"),
        ({"ips": ["10.0.0.1/24"]}, 409, "reserved_address"),
    ],
)
def test_what_is_not_theirs(
    api: Api, ippool: IPPool, foreign: Entry, more: Any, status: int, code: str
) -> None:
    answer = api("POST", entries_path(ippool), asking(**more))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "vault" not in answer.text
    assert Entry.objects.count() == 1


def test_their_own_duplicates_are_said(api: Api, ippool: IPPool) -> None:
    api.create(entries_path(ippool), asking())
    (duplicate,) = api.create(entries_path(ippool), asking(mac=C, vm="db"))["duplicates"]
    assert (duplicate["kind"], duplicate["with"][0]["vm"]) == ("ip", "web")


def test_what_came_to_be_a_duplicate_names_nobody(api: Api, ippool: IPPool) -> None:
    api.create(entries_path(ippool), asking())
    worlds.entry(ippool, B, "10.0.0.5/24", vm="vault", namespace="bank")
    (entry,) = api("GET", entries_path(ippool)).json()["results"]
    assert entry["duplicates"] == [{"kind": "ip", "value": "10.0.0.5", "with": [{"type": "other"}]}]


def test_the_ippool_tells_nothing_of_others(api: Api, ippool: IPPool, foreign: Entry) -> None:
    worlds.entry(ippool, B, "10.0.0.7/24", vm="vault", namespace="bank")
    document = api("GET", f"ippools/{ippool.pk}/").json()
    assert (document["entries"], document["conditions"], document["duplicates"]) == (0, [], None)
    assert document["version"] is None
    assert document["associated_nads"] == [{"namespace": "shop", "name": "n"}]
    manifest = api("GET", f"ippools/{ippool.pk}/manifest/")
    assert manifest.json()["spec"]["entries"] == {}
    assert "status" not in manifest.json()
    here = f"{entries_path(ippool)}{foreign.pk}/"
    assert [api(verb, here).status_code for verb in ("GET", "DELETE")] == [404, 404]
    assert api("GET", f"networks/{ippool.network_id}/addresses-for-mac/?mac={B}").status_code == 404


def test_an_entry_that_they_did_not_request_stays(api: Api, ippool: IPPool) -> None:
    entry = worlds.entry(ippool, C, "10.0.0.9/24", vm="db", namespace="shop")
    assert api("DELETE", f"{entries_path(ippool)}{entry.pk}/").status_code == 403
