"""Waves: VMs that move together, and whether everything is ready for them."""

from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from claims.models import NAD, Network, Wave, WaveVM
from claims.waves import waves
from tests.claims import worlds
from tests.claims.imports import drafts, pages

LIST, NEW = "admin:claims_wave_changelist", "admin:claims_wave_add"


@pytest.fixture
def network() -> Network:
    created = worlds.network()
    NAD.objects.create(network=created, namespace="blue", name="n", allow_persistent_ips=True)
    return created


@pytest.fixture
def wave(network: Network) -> Wave:
    return waves.create(network.cluster, "Saturday", author=worlds.BY)


def url(wave: Wave) -> str:
    return reverse("admin:claims_wave_change", args=[wave.pk])


def do(client: Client, wave: Wave, action: str, **said: Any) -> str:
    return pages.text(client.post(url(wave), {"action": action, **said}, follow=True))


@pytest.mark.exhaustive
def test_a_wave_is_made_changed_and_deleted(client: Client, network: Network) -> None:
    assert "Add the first wave" in pages.text(client.get(reverse(LIST)))
    said = {"cluster": network.cluster_id, "name": "Saturday", "planned_at": "2026-12-05T22:00"}
    assert client.post(reverse(NEW), said).status_code == 302
    wave = Wave.objects.get()
    again = client.post(reverse(NEW), said)
    assert "has a wave Saturday" in pages.text(again)
    assert "2026-12-05T22:00" in pages.text(again)
    assert "Saturday" in pages.text(client.get(reverse(LIST), {"q": "satur"}))
    assert "planned for Sat 2026-12-05 22:00 UTC" in pages.text(client.get(url(wave)))
    edit = reverse("admin:claims_wave_edit", args=[wave.pk])
    assert 'value="2026-12-05 22:00"' in pages.text(client.get(edit))
    client.post(edit, {"name": "Sunday", "note": "later"})
    wave.refresh_from_db()
    assert (wave.name, wave.note, wave.planned_at) == ("Sunday", "later", None)
    assert b"Sunday" in client.get(reverse("admin:claims_wave_export")).getvalue()
    delete = reverse("admin:claims_wave_delete", args=[wave.pk])
    assert "are kept" in pages.text(client.get(delete))
    client.post(delete)
    assert not Wave.objects.exists()


@pytest.mark.exhaustive
def test_a_committed_import_becomes_a_wave(client: Client, network: Network) -> None:
    web = drafts.row("Web 01", drafts.mac(1), "10.0.0.5")
    of = drafts.draft(network, web, drafts.row("db", drafts.mac(2), "10.0.0.1"))
    pages.do(client, of, "commit", skip_bad="true")
    assert "There is no such object." in pages.do(client, of, "wave", wave="999")
    shown = pages.do(client, of, "wave", wave_name="Saturday")
    assert "1 VM was added to the wave" in shown
    wave = Wave.objects.get()
    page = pages.text(client.get(url(wave)))
    assert "was Web 01" in page
    assert "its only VM" in page
    assert "10.0.0.5/24" in page
    assert "spec.preserveStaticIPs: true" in page
    assert "provisioned" in page
    pages.do(client, of, "wave", wave=wave.pk)
    assert WaveVM.objects.count() == 1


@pytest.mark.exhaustive
def test_the_page_says_what_is_not_ready(client: Client, network: Network, wave: Wave) -> None:
    ippool = worlds.ippool(network)
    worlds.entry(ippool, drafts.mac(1), "10.0.0.5/24", vm="web", namespace="blue")
    added = do(client, wave, "add", vms="blue/web\n\n blue/nobody \nblue/nothing")
    assert "3 VMs were added to the wave." in added
    assert "2 of 3 VMs" in added
    assert added.count(">No entry and no IPAMClaim is registered.</") == 2
    only = pages.text(client.get(url(wave), {"status": "ready"}))
    assert "No entry and no IPAMClaim" not in only
    paper = pages.text(client.get(url(wave), {"print": "1"}))
    assert "No entry and no IPAMClaim" in paper
    assert "Remove the selected VMs" not in paper
    stored = do(client, wave, "add", vms="blue/ok\nblue/Not A Name")
    assert "Line 2 (blue/Not A Name)" in stored
    assert "blue/ok blue/Not A Name</textarea>" in stored
    ids = WaveVM.objects.filter(vm__startswith="no").values_list("pk", flat=True)
    removed = do(client, wave, "remove", vm=list(ids), _confirmed="1")
    assert "2 VMs were removed from the wave" in removed
    assert list(WaveVM.objects.values_list("vm", flat=True)) == ["web"]
    assert "choose an import" in do(client, wave, "add_import").lower()


def test_the_report_is_a_csv_too(client: Client, wave: Wave) -> None:
    waves.add(wave.pk, [("blue", "web")], author=worlds.BY)
    link = reverse("claims-api:wave-readiness", args=[wave.pk])
    assert f"{link}?format=csv" in pages.text(client.get(url(wave)))
    assert b"web" in client.get(link, {"format": "csv"}).content


def test_a_viewer_is_offered_no_change(network: Network, wave: Wave) -> None:
    viewer = pages.browser("viewer")
    assert "Add VMs by name" not in pages.text(viewer.get(url(wave)))
    of = drafts.draft(network, drafts.row("web", drafts.mac(1), "10.0.0.5"))
    assert viewer.post(pages.url(of), {"action": "wave", "wave_name": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("text", "moment", "shown"),
    [
        ("2027-10-31 02:30", "2027-10-31T00:30Z", "2027-10-31 02:30"),  # the first one
        ("2027-10-31 02:30+01:00", "2027-10-31T01:30Z", "2027-10-31 02:30+01:00"),
        ("2027-03-28 02:30", "2027-03-28T01:30Z", "2027-03-28 03:30"),  # clocks have skipped it
        ("2027-03-28 04:30", "2027-03-28T02:30Z", "2027-03-28 04:30"),
    ],
)
def test_a_wave_in_the_night_when_clocks_change(
    client: Client, wave: Wave, text: str, moment: str, shown: str
) -> None:
    client.cookies["time_zone"] = "Europe/Berlin"
    edit = reverse("admin:claims_wave_edit", args=[wave.pk])
    assert client.post(edit, {"name": "Saturday", "planned_at": text}).status_code == 302
    wave.refresh_from_db()
    assert wave.planned_at == datetime.fromisoformat(moment)
    assert f'value="{shown}"' in pages.text(client.get(edit))


@pytest.mark.parametrize("text", ["0001-01-01 00:00", "9999-12-31 23:59"])
def test_a_time_outside_of_the_calendar_is_refused(client: Client, wave: Wave, text: str) -> None:
    for zone in ("Asia/Tokyo", "America/St_Johns"):
        client.cookies["time_zone"] = zone
        edit = reverse("admin:claims_wave_edit", args=[wave.pk])
        answer = client.post(edit, {"name": "Saturday", "planned_at": text})
        assert "between the years 2000 and 2199" in pages.text(answer)
        url = reverse("admin:history_compare")
        page = client.get(url, {"since": text.replace(" ", "T"), "until": ""})
        assert "between the years 2000 and 2199" in pages.text(page)
