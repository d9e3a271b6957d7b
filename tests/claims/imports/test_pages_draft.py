"""The page of an import: its rows with reasons, corrected in place, mapped, written and undone."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from claims.models import NAD, Entry, Network, PortGroup, VMImport, VMRow
from pools.models.imports import ImportStatus as Status
from pools.platform.admin import import_texts, live, related
from tests.claims import worlds
from tests.claims.imports import drafts, pages

A, B, C = drafts.mac(1), drafts.mac(2), drafts.mac(3)


@pytest.fixture
def of(network: Network) -> VMImport:
    """One new, one changed, one in conflict with the gateway, one refused."""
    worlds.entry(worlds.ippool(network), B, "10.0.0.6/24", vm="db", namespace="blue")
    return drafts.draft(
        network,
        drafts.row("Web 01", A, "10.0.0.5"),
        drafts.row("db", B, "10.0.0.7"),
        drafts.row("gw", C, "10.0.0.1"),
        drafts.row("far", drafts.mac(4), "192.0.2.1"),
    )


@pytest.mark.exhaustive
def test_the_page_says_what_each_row_would_do(client: Client, of: VMImport) -> None:
    shown = pages.page(client, of)
    assert "Ready to import: 2 of 4 rows" in shown
    assert "Import 2 valid rows, leave 2 out" in shown
    assert "10.0.0.1 is the gateway of the network." in shown
    assert "192.0.2.1 is in none of the network" in shown
    assert "<del>10.0.0.6/24</del> <ins>10.0.0.7/24</ins>" in shown
    assert "was Web 01" in shown
    only = pages.page(client, of, status="conflict")
    assert "gateway" in only
    assert "was Web 01" not in only
    assert "was Web 01" in pages.page(client, of, q=A.upper().replace(":", "-"))
    assert "No row matches this filter." in pages.page(client, of, q="nobody")
    assert "No row matches this filter." in pages.page(client, of, after="9" * 17)
    assert pages.page(client, of, status="\0nonsense", q="\0", after="x", groups="0")


@pytest.mark.exhaustive
def test_rows_are_corrected_skipped_and_given_an_address(client: Client, of: VMImport) -> None:
    after = pages.do(client, of, "correct", row=3, ips="10.0.0.9", vm="gw", mac=C)
    assert "Row 3 is new now." in after
    assert "Row 4 is still invalid" in pages.do(client, of, "correct", row=4, ips="nonsense")
    assert "Row 4 has 10.0.0.3/24 now." in pages.do(client, of, "free", row=4)
    pages.do(client, of, "skip", row=1)
    assert of.rows.get(number=1).status == "left_out"
    pages.do(client, of, "unskip", row=1)
    assert drafts.counts(VMImport.objects.get()) == {"new": 3, "changed": 1}
    assert "There is no such row." in pages.do(client, of, "skip", row="0")


@pytest.mark.exhaustive
def test_all_but_the_bad_rows_are_written_and_undone(client: Client, of: VMImport) -> None:
    assert "Rows in conflict: 1, invalid: 1" in pages.do(client, of, "commit", skip_bad="false")
    shown = pages.do(client, of, "commit", skip_bad="true")
    assert "Committed: 1 new, 1 changed, 1 conflict, 1 invalid." in shown
    assert "provisioned" in shown
    link = reverse("claims-api:import-manifest", args=[of.pk])
    assert f'href="{link}"' in shown
    assert re.findall(r'href="/admin/find/\?q=([^"]+)">', shown) == ["web-01", "db"]
    assert A in client.get(link).content.decode()
    assert 'value="undo"' not in shown
    assert "?ask=undo" in shown
    asked = pages.page(client, of, ask="undo")
    assert "1 record that the import created is deleted." in asked
    assert "1 changed record gets its previous values." in asked
    assert Entry.objects.get(mac=A).ips == ["10.0.0.5/24"]
    assert "required: ready for review" in pages.do(client, of, "commit")
    shown = pages.do(client, of, "undo")
    assert "Import undone, previous values restored." in shown
    assert list(Entry.objects.values_list("mac", "ips")) == [(B, ["10.0.0.6/24"])]


@pytest.mark.exhaustive
def test_what_runs_cannot_be_undone_and_the_page_says_so(
    client: Client, network: Network, of: VMImport
) -> None:
    pages.do(client, of, "commit", skip_bad="true")
    worlds.workload(network, "web-01", A, "10.0.0.5", namespace="blue")
    assert "running" in pages.page(client, of)
    assert "The import cannot be undone: row 1: the VM blue/web-01" in pages.do(client, of, "undo")
    assert Entry.objects.filter(mac=A).exists()


def test_port_groups_are_mapped_and_remembered(client: Client, network: Network) -> None:
    rows = [drafts.row("web", A, "10.0.0.5", network="vlan1")]
    of = drafts.draft(network, *rows, network=None, namespace="")
    assert of.counts["invalid"] == 1
    said = {"network:vlan1": network.pk}
    wrong = pages.do(client, of, "map", **said, **{"namespace:vlan1": "No Name"})
    assert "lower-case letters" in wrong
    assert 'value="No Name"' in wrong
    assert not PortGroup.objects.exists()
    done = pages.do(client, of, "map", **said, **{"namespace:vlan1": "shop"})
    assert "All rows were validated again: 1 new." in done
    assert PortGroup.objects.get().namespace == "shop"
    assert drafts.draft(network, *rows, network=None, namespace="").counts["new"] == 1


@pytest.mark.exhaustive
def test_port_groups_are_mapped_by_name_if_networks_are_many(
    client: Client, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(related, "MENU", 1)
    worlds.network("cluster_udn_green", subnets=("10.1.0.0/24",))
    rows = [drafts.row("web", A, "10.0.0.5", network="vlan1")]
    of = drafts.draft(network, *rows, network=None, namespace="")
    said = {"network:": ""}
    wrong = pages.do(client, of, "map", **said, **{"network:vlan1": "cluster_udn_red"})
    assert "Nothing has the name cluster_udn_red." in wrong
    assert 'value="cluster_udn_red"' in wrong
    assert not PortGroup.objects.exists()
    for name in (network.name, f"prod/{network.name}"):
        done = pages.do(client, of, "map", **said, **{"network:vlan1": name})
        assert f'value="prod/{network.name}"' in done
        assert PortGroup.objects.get().network == network
    pages.do(client, of, "map", **said, **{"network:vlan1": ""})
    of.refresh_from_db()
    assert of.counts["invalid"] == 1


def test_a_sheet_of_no_product_is_called_a_table(client: Client, network: Network) -> None:
    content = f"VM,Mac Address,Network,Powerstate\nweb,{A},vlan1,on\n"
    of = drafts.of_file(network, content, "vms.csv")
    assert "vms.csv</strong>, PowerCLI or another table" in pages.page(client, of)


def test_a_draft_is_thrown_away(client: Client, of: VMImport) -> None:
    assert "The import was cancelled; nothing was written." in pages.do(client, of, "cancel")
    assert not VMRow.objects.exists()
    assert client.post(pages.url(of), {"action": "nonsense"}).status_code == 400


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("status", "done", "told"),
    [
        (Status.QUEUED, 0, "Waiting for a worker."),
        (Status.DRAFTING, 500, "500 of 2 000 rows"),
        (Status.COMMITTING, 2000, "2 000 of 2 000 rows; validating the rows"),
        (Status.COMMITTED, 500, "Undoing the import: all of it or nothing"),
    ],
)
def test_work_under_way_shows_how_far_it_is(
    client: Client, of: VMImport, status: Status, done: int, told: str
) -> None:
    undo_wanted = status == Status.COMMITTED
    VMImport.objects.update(status=status, rows_total=2000, rows_done=done, undo_wanted=undo_wanted)
    renewed = client.get(pages.url(of), headers={"HX-Trigger": live.BUTTON}).text
    assert 'id="live-progress"' in renewed
    shown = pages.page(client, of)
    assert undo_wanted or told in renewed.replace("\u202f", " ")
    assert told in shown
    assert "You can close this page" in shown
    assert "was Web 01" not in shown
    assert "Apply to the cluster" not in shown
    assert ("?ask=discard" in shown) is not undo_wanted


def test_a_worker_that_has_not_stopped_yet_is_being_cancelled(client: Client, of: VMImport) -> None:
    VMImport.objects.update(status=Status.DRAFTING, counts={})
    question = pages.page(client, of, ask="discard")
    assert "Rows that are deleted" not in question
    assert re.findall(r">(Cancel[^<]*|Back)</", question)[-2:] == ["Cancel the import", "Back"]
    VMImport.objects.update(cancel_wanted=True)
    shown = pages.page(client, of)
    assert "Cancelling: nothing is written" in shown
    assert "?ask=discard" not in shown


def test_a_failed_import_says_why(client: Client, of: VMImport) -> None:
    VMImport.objects.update(status=Status.FAILED, error="The archive is damaged.")
    assert "Import failed.</strong> The archive is damaged." in pages.page(client, of)


def test_what_several_rows_have_in_common_is_said_once(client: Client, network: Network) -> None:
    NAD.objects.create(network=network, namespace="blue", name="n")
    rows = drafts.row("Web_01", A, "10.0.0.5"), drafts.row("db", B, "10.0.0.6")
    of = drafts.draft(network, *rows, namespace="apps")
    page = pages.page(client, of)
    assert page.count("The namespace apps has no network attachment definition") == 3  # on hover
    assert "so that the network selects it. <span" in page
    assert page.count("(2 of the rows below)") == 2
    assert "MTV renames VMs" in page
    assert "In the cluster the VM is named" not in page


@pytest.mark.parametrize(
    ("new", "bad", "said"),
    [
        (17, 3, "Import 17 valid rows, leave 3 out"),
        (1, 2, "Import 1 valid row, leave 2 out"),
        (17, 0, "Import 17 rows"),
        (1, 0, "Import 1 row"),
        (0, 3, ""),
        (0, 0, ""),
    ],
)
def test_the_button_says_what_it_does(new: int, bad: int, said: str) -> None:
    assert import_texts.commit_text({"writes": new, "bad": bad}) == said


def test_without_a_valid_row_there_is_no_button(client: Client, network: Network) -> None:
    of = drafts.draft(network, drafts.row("gw", A, "10.0.0.1"))
    shown = pages.page(client, of)
    assert 'value="commit"' not in shown
    assert "No row can be imported as it is" in shown


def test_warnings_are_counted_apart(client: Client, network: Network) -> None:
    NAD.objects.create(network=network, namespace="blue", name="n")
    of = drafts.draft(
        network,
        drafts.row("web", A, "10.0.0.5"),
        drafts.row("db", B, "10.0.0.6", namespace="apps"),
        drafts.row("gw", C, "10.0.0.1", namespace="apps"),
    )
    shown = pages.page(client, of)
    assert "with warnings</span> 1</a>" in shown
    assert "Import 2 valid rows, leave 1 out" in shown
    only = client.get(pages.url(of), {"status": "warning"}).context["listed"]
    assert [line["row"].vm for line in only["rows"]] == ["db"]
    assert [line["bad"] for line in only["rows"]] == [False]
    (conflict,) = client.get(pages.url(of), {"status": "conflict"}).context["listed"]["rows"]
    reasons = {reason["code"]: reason["warning"] for reason in conflict["reasons"]}
    assert reasons == {"gateway": False, "no_nad": True, "prefix_added": False}


def test_after_the_last_correction_all_rows_are_valid(client: Client, of: VMImport) -> None:
    url = f"{pages.url(of)}?status=conflict"
    said = {"action": "correct", "row": 3, "ips": "10.0.0.999"}
    shown = pages.text(client.post(url, said, follow=True))
    assert "Row 3 is still invalid. 10.0.0.999" in shown
    assert 'value="10.0.0.999"' in shown  # among the invalid rows, where it is now
    said["ips"] = "10.0.0.9"
    shown = pages.text(client.post(url, said, follow=True))
    assert "No row has this status any more" in shown
    assert "All rows are valid now." not in shown
    url = f"{pages.url(of)}?status=invalid"
    said = {"action": "correct", "row": 4, "ips": "10.0.0.10"}
    shown = pages.text(client.post(url, said, follow=True))
    assert "All rows are valid now." in shown
    assert shown.count("Import 4 rows") == 2
    assert f'href="{pages.url(of)}">Show all rows</a>' in shown
    assert "All rows are valid now." in pages.page(client, of, status="warning")
    assert "Show all rows" in pages.page(client, of, q="nobody")
