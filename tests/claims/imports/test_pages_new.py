"""The page of a new import: what is wrong is told beside its field; the list of imports, and who sees which."""

from typing import Any

import pytest
from django.conf import settings
from django.templatetags.static import static
from django.test import Client
from django.urls import reverse

from claims.admin.imports import imports
from claims.imports import formats
from claims.models import Network, VMImport
from pools.platform.admin import related
from tests.claims import worlds
from tests.claims.imports import drafts, pages

LIST = "admin:pools_import_changelist"
LINES = "web 00:50:56:00:00:01 10.0.0.5\ndb 00:50:56:00:00:02 10.0.0.6\n"
CSV = b"VM,MAC address,IP addresses,Network\nweb,00:50:56:00:00:01,10.0.0.5,vlan1\n"


def send(client: Client, **said: Any) -> Any:
    return client.post(reverse(pages.NEW), said)


@pytest.mark.parametrize(
    ("said", "kind", "rows"),
    [
        ({"kind": "one"}, "rows", 1),
        ({"kind": "", "text": LINES}, "two-column", 2),
        ({"kind": "vm", "file": CSV}, "template-csv", 1),
    ],
)
def test_each_door_makes_a_draft(network: Network, said: Any, kind: str, rows: int) -> None:
    client = pages.browser()
    if "file" in said:
        said = said | {"file": pages.file(said["file"])}
    answer = send(client, **pages.typed(network, **said))
    vm_import = VMImport.objects.get()
    assert answer.headers["Location"] == pages.url(vm_import)
    assert (vm_import.format, vm_import.counts["new"], vm_import.status) == (kind, rows, "drafted")
    assert (vm_import.network, vm_import.namespace, vm_import.limited) == (network, "shop", False)
    assert (vm_import.actor, vm_import.source) == ("operator", "admin")


def test_a_cluster_means_the_port_groups_of_the_file(network: Network, client: Client) -> None:
    said = pages.typed(network, kind="", file=pages.file(CSV), where=f"cluster-{network.cluster_id}")  # fmt: skip
    send(client, **said)
    vm_import = VMImport.objects.get()
    assert vm_import.network is None
    assert vm_import.counts["invalid"] == 1
    assert "1 row has no network yet" in pages.page(client, vm_import)


@pytest.mark.sample(11)
@pytest.mark.parametrize(
    ("said", "field", "told"),
    [
        ({"kind": ""}, "file", "Choose a file, or paste a text."),
        ({"kind": "vm", "text": " \n"}, "file", "Choose a file, or paste a text."),
        ({"vm": " "}, "vm", "Enter the name of the VM."),
        ({"namespace": "No Name"}, "namespace", "lower-case letters"),
        ({"where": "network-999999"}, "where", "Select a valid choice"),
        ({"where": "", "ips": ""}, "where", "Choose the target network."),
        ({"kind": "", "text": "what is\nthis"}, "text", "no header row found"),
        ({"kind": "vm", "text": "what is\nthis"}, "text", "no header row found"),
        ({"kind": "", "text": "kind: CiliumPodIPPool"}, "text", "Import pools"),
        ({"kind": "register", "text": "prefix\n10.9.0.0/24"}, "where", "Choose a cluster"),
        ({"kind": "pods"}, "kind", "Select a valid choice"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    network: Network, said: Any, field: str, told: str
) -> None:
    answer = send(pages.browser(), **pages.typed(network, **said))
    errors = answer.context["form"].errors
    assert told.lower() in " ".join(errors.get(field, [])).lower(), errors
    assert "00:50:56:00:00:01" in pages.text(answer)  # what was typed stays
    assert not VMImport.objects.exists()


def test_a_file_that_is_none_says_why(network: Network) -> None:
    said = pages.typed(network, kind="", file=pages.file(b"\xd0\xcf\x11\xe0" + b"\0" * 600))
    answer = send(pages.browser(), **said)
    assert answer.context["form"].errors["file"]
    assert "Choose it again" in pages.text(answer)


def test_a_large_body_is_refused_before_it_is_read(network: Network, client: Client) -> None:
    url, typed = reverse(pages.NEW), pages.typed(network)
    answer = client.post(url, typed, CONTENT_LENGTH=formats.LARGEST * 2)
    assert str(imports.TOO_LARGE) in pages.text(answer, 413)
    text = "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    answer = client.post(url, typed | {"kind": "", "text": text})
    assert str(imports.PASTED_TOO_LARGE) in pages.text(answer, 413)


def test_a_forged_form_is_refused(network: Network) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = pages.browser().cookies
    assert send(client, **pages.typed(network)).status_code == 403
    assert not VMImport.objects.exists()


def test_nothing_to_import_to_is_said() -> None:
    assert "none exists yet" in pages.text(pages.browser().get(reverse(pages.NEW)))


def test_a_network_that_is_named_is_chosen(network: Network, client: Client) -> None:
    other = worlds.network("cluster_udn_green", subnets=("10.1.0.0/24",))
    shown = pages.text(client.get(reverse(pages.NEW), {"network": other.pk}))
    assert f'href="{static("cadastre/vm-import.csv")}"' in shown
    assert f'<option value="network-{other.pk}" selected>' in shown
    send(client, **pages.typed(other, ips="10.1.0.5"))
    assert VMImport.objects.get().network == other


@pytest.fixture
def many(network: Network, monkeypatch: pytest.MonkeyPatch) -> Network:
    """More networks than a menu takes; one of the cluster `edge`."""
    monkeypatch.setattr(related, "MENU", 1)
    return worlds.network("vlan10", subnets=("10.1.0.0/24",), of=worlds.cluster("edge"))


def test_many_networks_are_named(many: Network, client: Client) -> None:
    shown = pages.text(client.get(reverse(pages.NEW), {"network": many.pk}))
    assert 'value="edge/vlan10"' in shown
    assert "A cluster alone is its name." in shown
    assert "<option" not in shown.partition('name="where"')[2].partition("</div>")[0]
    send(client, **pages.typed(many, where=" edge/vlan10 ", ips="10.1.0.5"))
    send(client, **pages.typed(many, ips="10.1.0.6"))  # as links and scripts have it
    assert [vm_import.network for vm_import in VMImport.objects.order_by("pk")] == [many, many]


def test_a_cluster_of_many_networks_is_named(many: Network) -> None:
    said = pages.typed(many, kind="vm", file=pages.file(CSV), where="edge")
    send(pages.browser(), **said)
    vm_import = VMImport.objects.get()
    assert (vm_import.network, vm_import.cluster) == (None, many.cluster)


@pytest.mark.sample(4)
@pytest.mark.parametrize("where", ["edge/vlan11", "vlan10", "nowhere", "network-99999"])
def test_a_name_of_no_network(many: Network, where: str) -> None:
    answer = send(pages.browser(), **pages.typed(many, where=where))
    assert not VMImport.objects.exists()
    assert f'value="{where}"' in pages.text(answer)
    assert answer.context["form"].errors["where"]


# --- the list --------------------------------------------------------------------------------------


@pytest.fixture
def foreign(network: Network) -> VMImport:
    return drafts.draft(network, drafts.row("hidden-vm", drafts.mac(7), "10.0.0.7"))


def test_the_list_says_what_each_is(network: Network, foreign: VMImport) -> None:
    client = pages.browser("viewer")
    shown = pages.text(client.get(reverse(LIST)))
    for item in (f"Import {foreign.pk}", "ready for review", "new", "1", "VMs", "tester"):
        assert item in shown
    assert f"Import {foreign.pk}" in pages.text(client.get(reverse(LIST), {"q": "tester"}))
    filtered = {"status": "committed", "kind": "vm", "cluster": network.cluster_id}
    assert f"Import {foreign.pk}" not in pages.text(client.get(reverse(LIST), filtered))
    assert b"drafted" in client.get(reverse("admin:pools_import_export")).getvalue()
    assert "Discard draft" not in pages.page(client, foreign)


def test_an_empty_list_offers_the_first_step(network: Network) -> None:
    assert "No imports yet" in pages.text(pages.browser().get(reverse(LIST)))


@pytest.mark.exhaustive
def test_an_owner_imports_for_their_own_namespaces(network: Network, foreign: VMImport) -> None:
    client = pages.owner(network, "shop")
    assert "hidden-vm" not in pages.text(client.get(reverse(LIST)))
    assert client.get(pages.url(foreign)).status_code == 404
    assert client.post(pages.url(foreign), {"action": "cancel"}).status_code == 404
    assert 'name="namespace" value="shop"' in pages.text(client.get(reverse(pages.NEW)))
    client.post(reverse(pages.NEW), pages.typed(network))
    vm_import = VMImport.objects.latest("pk")
    assert (vm_import.limited, vm_import.counts["new"]) == (True, 1)
    assert "Committed: 1 new." in pages.do(client, vm_import, "commit")
    client.post(reverse(pages.NEW), pages.typed(network, namespace="bank", ips="10.0.0.9"))
    other = VMImport.objects.latest("pk")
    assert other.counts["invalid"] == 1


def test_only_networks_that_are_seen_can_be_chosen(network: Network) -> None:
    hidden = worlds.network("hidden-net", subnets=("10.9.0.0/24",))
    client = pages.owner(network, "shop")
    assert "hidden-net" not in pages.text(client.get(reverse(pages.NEW)))
    answer = client.post(reverse(pages.NEW), pages.typed(hidden))
    assert answer.context["form"].errors["where"]
