"""The jobs that people come for, from the overview, and how many clicks each takes; a choice in a menu counts as two."""

import csv
import io
from ipaddress import ip_network
from typing import Any

import pytest

from claims.models import Entry, IPAMClaim, IPPool, Membership, Network
from pools.models import Block, BlockState, CIDRMigration, Pool
from pools.register.demo import demo
from tests.claims.imports import corpus
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)


class Clicks:
    """A visit of the overview whose clicks are counted."""

    def __init__(self, visit: Visit) -> None:
        self.page, self.number = visit.page, 0
        visit.open("/admin/")

    def click(self, role: Any, name: str, *, inside: str = "#content") -> None:
        self.number += 1
        self.page.locator(inside).get_by_role(role, name=name, exact=True).first.click()

    def add(self, model: str) -> None:
        self.number += 1
        self.page.locator(f"a[href*='/{model}/add/']").first.click()

    def open_from_menu(self, name: str) -> None:
        self.click("link", name, inside="#nav-sidebar")
        self.page.wait_for_load_state("networkidle")


def test_who_held_an_address_last_week_takes_one(visit: Visit) -> None:
    pool = Pool.objects.get(cluster__name=demo.FRANKFURT, name="green-pool")
    block = pool.blocks.filter(state=BlockState.HELD).order_by("allocated_at")[0]
    clicks = Clicks(visit)
    page = clicks.page
    page.keyboard.press("Control+k")
    page.locator("#search-input-command:focus").wait_for()
    page.keyboard.type(f"who held {block.cidr.network_address} at last week")
    result = page.locator("#command-results-list a", has_text="Who held")
    clicks.number += 1
    result.first.click()
    page.wait_for_url("**/history/**")
    page.locator("#content").get_by_text(block.holder_id).first.wait_for()
    assert clicks.number <= 1


def test_the_start_of_the_migration_of_a_cidr_takes_five(visit: Visit) -> None:
    pool = Pool.objects.get(cluster__name=demo.FRANKFURT, name="green-pool")
    cidr = pool.cidrs.order_by("pk")[0]
    CIDRMigration.objects.all().delete()
    clicks = Clicks(visit)
    clicks.open_from_menu("Pools")
    clicks.click("link", pool.name, inside=f"#result_list tr:has-text('{demo.FRANKFURT}')")
    clicks.click("link", f"Migrate {cidr.cidr}")
    clicks.click("button", "Preview")
    clicks.click("button", "Start migration")
    clicks.page.wait_for_url(f"**/pool/{pool.pk}/migrations/*/")
    clicks.page.locator(".cad-steps").wait_for()
    assert CIDRMigration.objects.filter(pool=pool, cidr=str(cidr.cidr)).exists()
    assert clicks.number <= 5


def test_a_duplicate_of_a_new_mac_entry_takes_four(visit: Visit) -> None:
    ippool = IPPool.objects.get(network__name="cluster_udn_tenant-blue")
    used = Entry.objects.filter(ippool=ippool).exclude(ips=[])[0]
    clicks = Clicks(visit)
    page = clicks.page
    page.keyboard.press("Control+k")
    page.locator("#search-input-command:focus").wait_for()
    page.keyboard.type("add mac entry")
    page.locator("#command-results-list a", has_text="Add MAC entry").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/entry/add/")
    if not page.locator("[name=ippool]").input_value():
        page.select_option("[name=ippool]", value=str(ippool.pk))
        clicks.number += 2
    page.fill("[name=mac]", "02:00:00:00:aa:01")
    page.fill("[name=ips]", used.ips[0].partition("/")[0])
    page.locator("[data-told]").get_by_text("is a duplicate").wait_for()
    clicks.click("button", "Next free address")
    page.locator("[data-told]").get_by_text("is a duplicate").wait_for(state="detached")
    clicks.click("button", "Add entry")
    page.wait_for_url("**/change/")
    assert Entry.objects.filter(mac="02:00:00:00:aa:01").exclude(ips=used.ips).exists()
    assert clicks.number <= 4


def _file(network: Network) -> dict[str, Any]:
    """Twenty VMs of vNetwork, of which two have no address that is one."""
    subnet = next(subnet for subnet in map(ip_network, network.subnets) if subnet.version == 4)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, corpus.VNETWORK)
    writer.writeheader()
    for number in range(1, 21):
        ip = f"{subnet[1000 + number]}" if number > 2 else "10.0.0.1120"
        writer.writerow(corpus.nic(number, **{"IPv4 Address": ip}))
    return {"name": "vms.csv", "mimeType": "text/csv", "buffer": stream.getvalue().encode()}


def test_twenty_vms_with_two_bad_rows_come_and_go_in_ten(visit: Visit) -> None:
    network = Network.objects.get(name="cluster_udn_tenant-blue")
    subnet = next(subnet for subnet in map(ip_network, network.subnets) if subnet.version == 4)
    entries = Entry.objects.count()
    clicks = Clicks(visit)
    page = clicks.page
    clicks.open_from_menu("Import")
    clicks.click("link", "New import")
    page.set_input_files("#id_file", _file(network))
    page.get_by_text("vms.csv,").wait_for()
    clicks.click("button", "Upload and preview")
    page.get_by_text("invalid 2").wait_for()
    for number in (1, 2):
        clicks.number += 2
        row = page.locator("tr", has_text=f"web-{number:05}").first
        row.locator("summary").click()
        row.locator("input[name=ips]").fill(f"{subnet[1000 + number]}")
        row.locator("button[value=correct]").click()
        page.wait_for_load_state("networkidle")
    clicks.click("button", "Import 20 rows")
    page.get_by_text("Committed: 20 new.").wait_for()
    assert Entry.objects.count() == entries + 20
    clicks.click("link", "Undo the import")
    clicks.click("button", "Undo the import")
    page.get_by_text("Import undone").first.wait_for()
    assert Entry.objects.count() == entries
    assert clicks.number <= 10


def test_a_vm_owner_of_a_namespace_takes_five(visit: Visit) -> None:
    clicks = Clicks(visit)
    page = clicks.page
    clicks.open_from_menu("Access")
    clicks.add("user")
    page.fill("[name=username]", "vera")
    page.fill("[name=namespaces]", f"{demo.FRANKFURT}/shop")
    clicks.click("button", "Save", inside="body")
    page.get_by_text("Link for vera").first.wait_for()  # to set a password
    membership = Membership.objects.get(user__username="vera")
    assert (membership.cluster.name, membership.namespaces) == (demo.FRANKFURT, ["shop"])
    assert clicks.number <= 5


def test_what_changed_in_a_pool_since_yesterday_takes_three(visit: Visit) -> None:
    visit.open("/admin/")
    page = visit.page
    page.locator("#content a[href*='/pools/pool/'][href$='/change/']").first.click()
    visit.click_in_menu("Compare two moments")  # two
    page.wait_for_url("**/history/compare/?pool=*")
    page.get_by_text("Last change").or_(page.get_by_text("No holder changed")).first.wait_for()


def test_why_a_vm_has_no_address_takes_two(visit: Visit) -> None:
    claim = IPAMClaim.objects.filter(ips=[], gone_at=None).exclude(vm="")[0]
    clicks = Clicks(visit)
    clicks.open_from_menu("Claims")
    clicks.page.locator("#result_list a", has_text=claim.name).first.click()
    clicks.number += 1
    status = clicks.page.locator("section", has=clicks.page.get_by_role("heading", name="Status"))
    assert len(status.first.inner_text().splitlines()) > 2  # the state, and what to do next
    assert clicks.number <= 3


_POOL = """apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: violet-pool}
spec: {ipv4: {cidrs: [172.31.240.0/20], maskSize: 24}}
"""


def test_the_first_five_things_of_the_readme(visit: Visit) -> None:
    """README.md, *The first five things to do*: each takes a click or a paste."""
    page = visit.page
    visit.open("/admin/")
    page.locator("#content a[href*='/pools/pool/'][href$='/change/']").first.click()
    page.locator("#tabs-items").get_by_role("link", name="Map", exact=True).click()
    page.locator(".cad-map").first.wait_for()
    block = Block.objects.filter(state=BlockState.HELD, holder_kind="node").order_by("pk")[0]
    page.keyboard.press("Control+k")
    page.locator("#search-input-command:focus").wait_for()
    page.keyboard.type(str(block.cidr.network_address))
    page.locator("#command-results-list a", has_text=str(block.cidr)).first.click()
    page.locator("#content").get_by_text(block.holder_id).first.wait_for()
    page.locator("#nav-sidebar").get_by_role("link", name="Clusters", exact=True).click()
    page.locator("a[href$='/pools/cluster/add/']").first.click()
    page.fill("[name=name]", "prod")
    page.get_by_role("button", name="Add the cluster").click()
    page.get_by_text("Cluster prod was added.").wait_for()
    visit.click_in_menu("Import pools")
    page.fill("[name=text]", _POOL)
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Import into prod").click()
    page.locator("#result_list").get_by_role("link", name="violet-pool").wait_for()
    assert Pool.objects.get(name="violet-pool").cluster.name == "prod"
    for tutorial in ("administration", "vm-import", "rest-api"):
        visit.open(f"/admin/docs/tutorials/{tutorial}/")
        assert page.locator("#content h1, #content h2").count()
