"""Imports in a browser; the whole way from a file to a wave is that of the tutorial (test_tutorials.py)."""

import csv
import io
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from claims.imports import drafts as import_drafts, formats
from claims.models import NAD, Entry, Network, VMImport
from claims.waves import waves
from pools.platform.imports import states, worker
from tests.claims import worlds
from tests.claims.imports import corpus, drafts
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "/admin/pools/import/add/"


def _network(*subnets: str) -> Network:
    network = worlds.network(subnets=subnets or ("10.0.0.0/16",))
    NAD.objects.create(network=network, namespace="shop", name="n", allow_persistent_ips=True)
    return network


def _file(*rows: dict[str, object]) -> dict[str, Any]:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, corpus.VNETWORK)
    writer.writeheader()
    writer.writerows(rows)
    return {"name": "saturday.csv", "mimeType": "text/csv", "buffer": stream.getvalue().encode()}


def _nic(number: int, ip: str, **more: object) -> dict[str, object]:
    return corpus.nic(number, **{"IPv4 Address": ip} | more)


def test_a_refused_row_says_why(visit: Visit) -> None:
    """The same link-local address in both columns is told once, and not left out twice."""
    network = _network()
    page = visit.page
    visit.open(NEW)
    link_local = "fe80::250:56ff:fe00:1"
    row = _nic(1, f"10.0.0.1120, {link_local}", **{"IPv6 Address": link_local})
    page.set_input_files("#id_file", _file(row))
    page.get_by_text("saturday.csv,").wait_for()
    page.select_option("select[name=where]", label="prod: the whole cluster")
    page.click("text=More options")
    page.fill("input[name=namespace]", "shop")
    page.click("text=Upload and preview")
    page.get_by_label("Network of ").first.select_option(f"prod/{network.name}")
    page.click("button[value=map]")
    page.get_by_role("link", name="invalid 1").click()
    (stored,) = VMImport.objects.get(cluster=network.cluster).rows.all()
    messages = [
        reason["message"] for reason in stored.reasons if reason["code"] == "not_an_address"
    ]
    assert messages
    shown = page.locator("tr", has_text="web-00001").first.inner_text()
    assert all(shown.count(message) == 1 for message in dict.fromkeys(messages)), (shown, messages)


def test_one_vm_is_typed_and_its_duplicate_is_corrected_in_the_draft(visit: Visit) -> None:
    network = _network()
    worlds.entry(worlds.ippool(network), drafts.mac(9), "10.0.0.40/16", vm="db", namespace="shop")
    page = visit.page
    visit.open(NEW)
    page.get_by_text("One VM, typed by hand", exact=True).click()
    expect(page.locator("#id_file")).to_be_hidden()
    page.select_option("select[name=where]", value=f"network-{network.pk}")
    page.fill("input[name=vm]", "web")
    page.fill("input[name=mac]", drafts.mac(1))
    page.fill("input[name=ips]", "10.0.0.40")
    page.click("text=More options")
    expect(page.locator("textarea[name=mapping]")).to_be_hidden()
    page.fill("input[name=namespace]", "shop")
    page.click("text=Upload and preview")
    page.get_by_text("10.0.0.40 is already used by the entry").wait_for()
    page.click("#row-1 summary")
    page.click("text=Next free address")
    page.get_by_text("Row 1 has 10.0.0.3/16 now.").wait_for()
    page.get_by_role("button", name="Import 1 row").click()
    page.get_by_text("Committed: 1 new.").wait_for()


def test_a_file_that_is_too_large_is_not_sent(visit: Visit) -> None:
    _network()
    visit.open(NEW)
    size = 20 * 1024 * 1024 + 1
    visit.page.evaluate(
        """size => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(size)], "huge.csv"));
            const drop = new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true });
            document.querySelector("[data-drop]").dispatchEvent(drop);
        }""",
        size,
    )
    visit.page.get_by_text("The files are larger than 20 MiB. Import them in parts.").wait_for()
    assert visit.page.locator("button:has-text('Upload and preview')").is_disabled()


def test_a_large_import_shows_how_far_it_is_and_comes_to_its_end(visit: Visit) -> None:
    network = _network()
    rows = drafts.many(states.SMALL + 1)
    of = import_drafts.IMPORTS.create([formats.rows_upload(rows)], VMImport(cluster=network.cluster, network=network), author=worlds.BY)  # fmt: skip
    visit.open(reverse("admin:pools_import_change", args=[of.pk]))
    visit.page.get_by_text("Waiting for a worker.").wait_for()
    assert worker.process_import(of.pk)
    visit.page.get_by_role("heading", name="Ready to import: 2").wait_for()


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_addresses_that_keep_a_vm_from_starting_have_a_way_out(visit: Visit) -> None:
    """All that MTV has: IPv4 alone, on a network of both families, and two of one NIC."""
    network = _network("10.0.0.0/16", "fd00::/64")
    of = drafts.draft(
        network,
        drafts.row("web", drafts.mac(1), "10.0.0.11"),
        drafts.row("db", drafts.mac(2), "10.0.0.12", "10.0.0.13"),
        namespace="shop",
    )
    page = visit.page
    visit.open(f"/admin/pools/import/{of.pk}/change/")
    assert (
        page.locator("tr:has-text('10.0.0.12')").get_by_text("two addresses of one family").count()
    )
    assert not visit.scrolls_sideways()
    page.get_by_role("button", name="Keep 10.0.0.13/16").click()
    page.get_by_text("The row has no IPv6 address").nth(1).wait_for()
    page.get_by_role(
        "button", name="Assign the next free address of the missing family to 2 rows"
    ).click()
    page.get_by_text("Completed: 2 new.").wait_for()
    page.get_by_text("fd00::4/64").wait_for()
    page.get_by_role("button", name="Import 2 rows").click()
    page.get_by_text("Committed: 2 new.").wait_for()
    assert {tuple(entry.ips) for entry in Entry.objects.filter(ippool__network=network)} == {
        ("10.0.0.11/16", "fd00::3/64"),
        ("10.0.0.13/16", "fd00::4/64"),
    }


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_every_page_of_imports_fits(visit: Visit) -> None:
    network = _network()
    row = drafts.row("a VM with quite a long name, as people give them", drafts.mac(2), "10.0.0.6")
    bad = drafts.row("gw", drafts.mac(3), "10.0.0.1", network="a port group " * 6)
    drafted = drafts.draft(network, row, bad)
    done = drafts.draft(network, drafts.row("web", drafts.mac(1), "10.0.0.5"), namespace="shop")
    import_drafts.IMPORTS.commit(done.pk, author=worlds.BY)
    wave = waves.create(network.cluster, "Saturday", author=worlds.BY)
    waves.add_import(wave.pk, VMImport.objects.get(pk=done.pk), author=worlds.BY)
    waves.add(wave.pk, [("shop", "nobody-knows-this-one")], author=worlds.BY)
    of_wave = f"/admin/claims/wave/{wave.pk}/"
    for path in (
        NEW, "/admin/pools/import/", f"/admin/pools/import/{drafted.pk}/change/",
        f"/admin/pools/import/{done.pk}/change/", "/admin/claims/wave/", "/admin/claims/wave/add/",
        f"{of_wave}change/", f"{of_wave}change/?print=1", f"{of_wave}edit/", f"{of_wave}delete/",
    ):  # fmt: skip
        visit.open(path)
        for folded in visit.page.locator("#content details").all():
            folded.evaluate("one => { one.open = true; }")
        assert visit.complaints == [], path
        assert not visit.scrolls_sideways(), path
