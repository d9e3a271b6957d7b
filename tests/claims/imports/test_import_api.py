"""imports/ over REST: the doors, the draft, its rows, what becomes of it."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from claims.models import Entry, Network, VMImport
from pools.platform.imports import worker
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row
from tests.edges import api as apis

CSV = (
    "VM,Powerstate,Template,SRM Placeholder,Network,Mac Address,IPv4 Address\n"
    f"web 01,poweredOn,False,False,vlan100,{mac(1)},10.0.0.11\n"
    f'web 02,poweredOn,False,False,vlan100,{mac(2)},"10.0.0.12, fe80::1"\n'
    f"web 03,poweredOn,False,False,vlan200,{mac(3)},10.0.0.13\n"
)


def upload(api: apis.Api, content: str | bytes, **values: Any) -> Any:
    data = content.encode() if isinstance(content, str) else content
    file = SimpleUploadedFile("vms.csv", data)
    return api.client.post(f"{apis.ROOT}imports/", {"file": file, **values})


def made(answer: Any) -> Any:
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_file_becomes_a_draft_and_is_written(network: Network, api: apis.Api) -> None:
    draft = made(upload(api, CSV, network=network.pk, namespace="shop"))
    assert (draft["format"], draft["status"]) == ("rvtools-csv", "drafted")
    assert draft["counts"] == {
        "new": 3, "changed": 0, "unchanged": 0, "conflict": 0, "invalid": 0,
        "left_out": 0, "vanished": 0, "released": 0,
    }  # fmt: skip
    place = f"imports/{draft['id']}/"
    rows = api("GET", f"{place}rows/?status=new&limit=2").json()
    assert [result["vm"] for result in rows["results"]] == ["web-01", "web-02"]
    assert {"line", "vm", "mac", "ips", "status", "reasons"} <= rows["results"][0].keys()
    assert rows["next"]
    done = api("POST", f"{place}commit/", {"skip_bad": True})
    assert (done.status_code, done.json()["status"]) == (200, "committed")
    answer = api("GET", place).json()
    assert answer["vm_status_counts"]["provisioned"] == 3
    assert api("GET", f"{place}rows/1/").json()["vm_status"] == "provisioned"
    yaml = api("GET", f"{place}manifest/").content.decode()
    assert mac(1) in yaml
    assert "kind: IPPool" in yaml
    assert api("POST", f"{place}undo/").json()["status"] == "undone"
    assert not Entry.objects.exists()


def test_port_groups_are_mapped_and_remembered(network: Network, api: apis.Api) -> None:
    green = worlds.network("cluster_udn_green", subnets=("10.1.0.0/24",))
    mapping = {"vlan100": {"network": network.pk, "namespace": "shop"}}
    draft = made(upload(api, CSV, mapping=json.dumps(mapping)))
    assert (draft["counts"]["new"], draft["counts"]["invalid"]) == (2, 1)
    groups = api("GET", f"imports/{draft['id']}/").json()["port_groups"]
    assert [(group["name"], group["rows"], group["network"]) for group in groups] == [
        ("vlan100", 2, network.pk),
        ("vlan200", 1, None),
    ]
    more = {"mapping": {"vlan200": {"network": green.pk}}}
    again = api("PATCH", f"imports/{draft['id']}/", more).json()
    assert again["counts"]["invalid"] == 1  # its address is none of green's
    row_3 = api("GET", f"imports/{draft['id']}/rows/3/").json()
    assert {reason["code"] for reason in row_3["reasons"]} == {"outside_subnet", "vm_name_changed"}
    next_one = made(upload(api, CSV, cluster="prod"))
    assert (next_one["counts"]["new"], next_one["counts"]["invalid"]) == (2, 1)


def test_rows_are_corrected_skipped_and_given_an_address(network: Network, api: apis.Api) -> None:
    worlds.entry(worlds.ippool(network), mac(9), "10.0.0.2/24")
    rows = [row("a", mac(1), "10.0.0.1"), row("b", "nonsense", "10.0.0.3"), row("c", mac(3))]
    body = {"rows": rows, "network": network.pk, "namespace": "shop"}
    draft = made(api("POST", "imports/", body))
    place = f"imports/{draft['id']}/rows/"
    assert [result["status"] for result in api("GET", place).json()["results"]] == [
        "conflict", "invalid", "invalid"
    ]  # fmt: skip
    corrected = api("PATCH", f"{place}2/", {"mac": mac(2)}).json()
    assert (corrected["status"], corrected["mac"], corrected["corrected"]) == ("new", mac(2), True)
    free = api("PATCH", f"{place}3/", {"free_address": True}).json()
    assert (free["status"], free["ips"]) == ("new", ["10.0.0.4/24"])
    assert api("PATCH", f"{place}1/", {"skip": True}).json()["status"] == "left_out"
    counts = api("GET", f"imports/{draft['id']}/").json()["counts"]
    assert (counts["new"], counts["left_out"]) == (2, 1)
    assert api("PATCH", f"{place}1/", {"skip": False}).json()["status"] == "conflict"
    apis.refused(api("POST", f"imports/{draft['id']}/commit/"), 409, "import_has_bad_rows")
    apis.refused(api("PATCH", f"{place}1/", {"skip": True, "vm": "x"}), 400, "conflicting_fields")
    apis.refused(api("PATCH", f"{place}99/", {"skip": True}), 404, "not_found")


def test_committed_at_once_or_a_draft_that_says_why_not(network: Network, api: apis.Api) -> None:
    body = {"rows": [row("a", mac(1), "10.0.0.5")], "network": network.pk, "commit": True}
    assert made(api("POST", "imports/", body))["status"] == "committed"
    body["rows"] = [row("b", mac(2), "10.0.0.5")]
    draft = made(api("POST", "imports/", body))
    assert (draft["status"], draft["error"]["code"]) == ("drafted", "import_has_bad_rows")
    assert made(api("POST", "imports/", body | {"skip_bad": True}))["status"] == "committed"
    assert Entry.objects.count() == 1


def test_a_cancelled_draft_is_gone(network: Network, api: apis.Api) -> None:
    draft = made(upload(api, CSV, network=network.pk))
    assert api("POST", f"imports/{draft['id']}/cancel/").json()["status"] == "cancelled"
    assert api("GET", f"imports/{draft['id']}/rows/").json()["results"] == []
    apis.refused(api("POST", f"imports/{draft['id']}/commit/"), 409, "import_state")


@pytest.mark.exhaustive
def test_a_large_one_waits_for_a_worker_also_while_the_broker_is_away(network: Network) -> None:
    wide = worlds.network("wide", subnets=("10.0.0.0/16",))
    api = apis.Api("operator")
    body = {"rows": drafts.many(2001), "network": wide.pk, "commit": True}
    queued = made(api("POST", "imports/", body))
    assert (queued["status"], queued["progress"]["total"]) == ("queued", 2001)
    place = f"imports/{queued['id']}/"
    apis.refused(api("POST", f"{place}commit/"), 409, "import_state")
    worker.process_import(queued["id"])
    done = api("GET", place).json()
    assert (done["status"], done["progress"]["percent"]) == ("committed", 100)
    undoing = api("POST", f"{place}undo/")
    assert (undoing.status_code, undoing.json()["status"]) == (202, "committed")
    apis.refused(api("POST", f"{place}undo/"), 409, "import_state")
    worker.process_import(queued["id"])
    assert api("GET", place).json()["status"] == "undone"
    assert not Entry.objects.exists()


def test_a_vm_owner_imports_for_namespaces_of_their_own(network: Network) -> None:
    network.nads.create(namespace="shop", name="blue", role="primary")
    blue = worlds.ippool(network)
    worlds.entry(blue, mac(7), "10.0.0.7/24", vm="secret", namespace="bank")
    mine = worlds.entry(blue, mac(8), "10.0.0.8/24", vm="mine", namespace="shop")
    api = worlds.owner(network.cluster, "shop")
    rows = [
        row("web", mac(1), "10.0.0.11", namespace="shop"),
        row("web", mac(2), "10.0.0.12", namespace="bank"),
        row("x", mac(3), "10.0.0.7", namespace="shop"),
        row("y", mac(7), "10.0.0.9", namespace="shop"),
        row("mine", mac(8), "10.0.0.10", namespace="shop"),
    ]
    draft = made(api("POST", "imports/", {"rows": rows, "network": network.pk}))
    results = api("GET", f"imports/{draft['id']}/rows/").json()["results"]
    assert [(item["status"], item["reasons"][0]["code"]) for item in results] == [
        ("new", "prefix_added"),
        ("invalid", "permission_denied"),
        ("conflict", "duplicate_ip"),
        ("conflict", "duplicate_mac"),
        ("invalid", "permission_denied"),
    ]
    assert "secret" not in json.dumps(results)
    done = api("POST", f"imports/{draft['id']}/commit/", {"skip_bad": True})
    assert done.json()["status"] == "committed"
    assert Entry.objects.get(mac=mac(1)).source == "request"
    mine.refresh_from_db()
    assert mine.ips == ["10.0.0.8/24"]
    assert "secret" not in api("GET", f"imports/{draft['id']}/manifest/").content.decode()


def test_foreign_imports_and_networks_do_not_exist_for_a_vm_owner(network: Network) -> None:
    draft = made(upload(apis.Api("operator"), CSV, network=network.pk))
    api = worlds.owner(network.cluster, "shop")
    apis.refused(api("GET", f"imports/{draft['id']}/"), 404, "not_found")
    apis.refused(api("POST", f"imports/{draft['id']}/commit/"), 404, "not_found")
    assert api("GET", "imports/").json()["results"] == []
    apis.refused(upload(api, CSV, network=network.pk), 400, "unknown_network")
    mapping = json.dumps({"vlan100": {"network": network.pk}})
    apis.refused(upload(api, CSV, mapping=mapping), 400, "unknown_network")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (None, 200),
        ({}, 200),
        ({"skip_bad": False}, 200),
        ("[]", 400),
        ('{"skip_bad": 1}', 400),
        ('{"x": 1}', 400),
    ],
)
def test_the_body_of_a_commit(network: Network, body: Any, status: int, api: apis.Api) -> None:
    draft = made(upload(api, CSV, network=network.pk, namespace="shop"))
    answer = api("POST", f"imports/{draft['id']}/commit/", body)
    assert answer.status_code == status, answer.content
    assert (VMImport.objects.get().status == "committed") is (status == 200)


VLAN = f"VM,Network,Mac Address,IPv4 Address\nweb,vlan100,{mac(1)},10.0.0.11\n"


def test_a_port_group_is_mapped_by_the_id_of_its_network_alone(
    network: Network, api: apis.Api
) -> None:
    draft = made(upload(api, VLAN, mapping=json.dumps({"vlan100": network.pk})))
    assert draft["counts"]["new"] == 1
    assert draft["mapping"] == {"vlan100": {"network": network.pk, "namespace": ""}}
    unmapped = made(upload(api, VLAN.replace("vlan100", "vlan200"), cluster="prod"))
    assert unmapped["counts"]["invalid"] == 1
    place = f"imports/{unmapped['id']}/"
    mapped = api("PATCH", place, {"mapping": {"vlan200": network.pk}}).json()
    assert mapped["counts"]["new"] == 1
    again = api("PATCH", place, {"mapping": mapped["mapping"]}).json()  # as it was answered
    assert again["mapping"] == {"vlan200": {"network": network.pk, "namespace": ""}}


@pytest.mark.parametrize("to", ["blue", "7", True, None, [7], 7.0, {"id": 7}])
def test_another_mapping_is_told_the_expected_form(
    network: Network, api: apis.Api, to: object
) -> None:
    answer = upload(api, VLAN, mapping=json.dumps({"vlan100": to}))
    apis.refused(answer, 400, "wrong_type")
    (problem,) = answer.json()["errors"]
    assert problem["field"] == "mapping.vlan100"
    assert 'a network id or an object {"network": id' in problem["message"]
    assert not VMImport.objects.exists()


@pytest.mark.sample(5)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\x1b", "\u2028"])
def test_a_mac_of_a_body_with_a_control_character_is_none(
    network: Network, api: apis.Api, end: str
) -> None:
    ippool = worlds.ippool(network)
    entry = {"mac": mac(1) + end, "ips": ["10.0.0.5/24"]}
    apis.refused(api("POST", f"ippools/{ippool.pk}/entries/", entry), 400, "mac_syntax")
    claim = {"cluster": "prod", "network": network.name, "namespace": "shop", "vm": "web"}
    claim["mac"] = mac(1) + end
    apis.refused(api("POST", "ipamclaims/", claim), 400, "mac_syntax")
    said = {"rows": [row("web", mac(1) + end, "10.0.0.5")], "network": network.pk}
    draft = made(api("POST", "imports/", said))
    place = f"imports/{draft['id']}/rows/1/"
    refused = api("GET", place).json()
    assert (refused["status"], refused["reasons"][0]["code"]) == ("invalid", "mac_syntax")
    apis.refused(api("PATCH", place, {"mac": mac(1) + end}), 400, "mac_syntax")
    assert api("PATCH", place, {"mac": mac(1)}).json()["status"] == "new"


def test_a_mac_parameter_with_a_line_separator_is_none(network: Network) -> None:
    api = apis.Api()
    text = f"mac={drafts.mac(1)}%e2%80%a8"
    for place in ("ipamclaims/", f"networks/{network.pk}/addresses-for-mac/", "history/"):
        apis.refused(api("GET", f"{place}?{text}"), 400, "mac_syntax")
