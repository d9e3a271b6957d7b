"""What people and programs send to the doors of imports, and what the draft says of it."""

from __future__ import annotations

import json

import pytest

from claims.models import Network, VMImport
from tests.claims import worlds
from tests.claims.imports.drafts import mac, row
from tests.claims.imports.test_import_api import made, upload
from tests.edges import api as apis

pytestmark = pytest.mark.django_db

VLAN = f"VM,Network,Mac Address,IPv4 Address\nweb,vlan100,{mac(1)},10.0.0.11\n"


@pytest.fixture
def network(db: None) -> Network:
    return worlds.network()


@pytest.fixture
def api(db: None) -> apis.Api:
    return apis.Api("operator")


@pytest.mark.parametrize("body", ["[]", '{"skip_bad": 1}', '{"x": 1}'])
def test_a_commit_that_says_something_else_is_none(
    network: Network, api: apis.Api, body: str
) -> None:
    said = {"rows": [row("web", mac(1), "10.0.0.5")], "network": network.pk}
    draft = made(api("POST", "imports/", said))
    assert api("POST", f"imports/{draft['id']}/commit/", body).status_code == 400


def test_a_port_group_is_mapped_by_the_id_of_its_network_alone(
    network: Network, api: apis.Api
) -> None:
    draft = made(upload(api, VLAN, mapping=json.dumps({"vlan100": network.pk})))
    assert draft["counts"]["new"] == 1
    assert draft["mapping"] == {"vlan100": {"network": network.pk, "namespace": ""}}
    unmapped = made(upload(api, VLAN.replace("vlan100", "vlan200"), cluster="prod"))
    assert unmapped["counts"]["invalid"] == 1
    place = f"imports/{unmapped['id']}/"
    assert api("PATCH", place, {"mapping": {"vlan200": network.pk}}).json()["counts"]["new"] == 1


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


def test_a_mac_parameter_with_a_line_separator_is_none(network: Network) -> None:
    api = apis.Api()
    text = f"mac={mac(1)}%e2%80%a8"
    for place in ("ipamclaims/", f"networks/{network.pk}/addresses-for-mac/", "history/"):
        apis.refused(api("GET", f"{place}?{text}"), 400, "mac_syntax")


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
