"""networks/ over REST: shapes, filters, what is refused and how, and what VM owners see."""

from typing import Any

import pytest
import yaml

from claims.api.networks import NetworkSerializer
from claims.models import NAD, Network
from claims.networks import networks, networks as network_names
from pools.models import Cluster, Connection, Mode, Now, PoolCIDR
from tests.claims import worlds
from tests.edges.api import PROBLEM, Api, refused

BLUE: dict[str, Any] = {
    "cluster": "prod", "name": "cluster_udn_blue", "kind": "cudn", "topology": "layer2",
    "role": "primary", "lifecycle": "Persistent", "subnets": ["10.0.0.0/16", "fd00::/64"],
    "default_gateways": ["10.0.9.1", "fd00::9"], "reserved_subnets": ["10.0.1.0/24"],
    "infrastructure_subnets": ["10.0.9.0/28", "fd00::/120"], "namespaces": ["blue"],
}  # fmt: skip
BARE = dict.fromkeys(("default_gateways", "reserved_subnets", "infrastructure_subnets"))


@pytest.fixture
def api() -> Api:
    api = Api()
    api.cluster("prod")
    return api


def create_network(api: Api, **changes: Any) -> dict[str, Any]:
    body = {key: value for key, value in {**BLUE, **changes}.items() if value is not None}
    document: dict[str, Any] = api.create("networks/", body)
    return document


def names(api: Api, query: str = "") -> list[str]:
    answer = api("GET", f"networks/?{query}")
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()["results"]]


def test_one_by_hand_for_an_observed_cluster(api: Api) -> None:
    document = create_network(api)
    assert set(document) == set(NetworkSerializer().fields) - {"namespaces"}
    for name in BLUE.keys() - {"namespaces"}:
        assert document[name] == BLUE[name]
    assert (document["namespace"], document["nads"], document["applied"]) == ("", [], False)
    assert (document["static_vms"]["ok"], document["static_vms"]["reasons"]) == (True, [])
    pool = api("GET", f"pools/{document['pool']}/").json()
    assert (pool["name"], pool["category"]) == ("cluster_udn_blue", "vm")
    assert [cidr["cidr"] for cidr in pool["ipv4"]["cidrs"]] == ["10.0.0.0/16"]
    assert api("GET", f"networks/{document['id']}/").json() == document


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"lifecycle": None}, ["not_persistent"]),
        ({"role": "secondary"} | BARE, ["not_primary"]),
        ({"topology": "layer3", "lifecycle": None} | BARE, ["not_layer2", "not_persistent"]),
        ({"kind": "udn", "name": "shop_blue", "namespace": "shop", "namespaces": None}, []),
    ],
)
def test_results(api: Api, changes: dict[str, Any], codes: list[str]) -> None:
    static_vms = create_network(api, **changes)["static_vms"]
    assert [reason["code"] for reason in static_vms["reasons"]] == codes
    assert static_vms["ok"] is not bool(codes)
    assert names(api, f"static_vms={'false' if codes else 'true'}") != []
    assert names(api, f"static_vms={'true' if codes else 'false'}") == []


def test_the_first_address_is_the_gateway_unless_one_is_given(api: Api) -> None:
    document = create_network(api, default_gateways=None, infrastructure_subnets=None)
    assert document["default_gateways"] == ["10.0.0.1", "fd00::1"]
    assert document["gateways_configured"] is False


BAD = {
    "host-bits": ({"subnets": ["10.0.0.1/16"]}, "subnets.0", "host_bits_set"),
    "gateway": ({"default_gateways": ["10.1.0.1", "fd00::9"]}, "default_gateways.0", "gateway_conflict"),
    "overlap": ({"reserved_subnets": ["10.0.9.0/24"]}, "infrastructure_subnets.0", "cidr_overlap"),
    "family": ({"subnets": ["10.0.0.0/16"]}, "default_gateways.1", "mixed_family"),
    "unknown": ({"gateway": "10.0.0.1"}, "gateway", "unknown_field"),
    "read-only": ({"static_vms": {"ok": True}}, "static_vms", "read_only_field"),
    "cluster": ({"cluster": "nowhere"}, "cluster", "unknown_cluster"),
    "type": ({"subnets": "10.0.0.0/16"}, "subnets", "wrong_type"),
    "nested": ({"subnets": [["10.0.0.0/16"]]}, "subnets.0", "wrong_type"),
    "number": ({"name": 7}, "name", "wrong_type"),
    "applied": ({"applied": "yes"}, "applied", "wrong_type"),
    "blank": ({"description": 7}, "description", "wrong_type"),
    "bidi": ({"name": "cluster_udn_\u202eb"}, "name", "invisible_character"),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize(("changes", "field", "code"), BAD.values(), ids=BAD.keys())
def test_bad_input(api: Api, changes: dict[str, Any], field: str, code: str) -> None:
    answer = api("POST", "networks/", BLUE | changes)
    assert answer.status_code == 400
    assert set(answer.json()) == PROBLEM
    assert (field, code) in [(error["field"], error["code"]) for error in answer.json()["errors"]]
    assert not Network.objects.exists()


def test_a_body_that_says_nothing(api: Api) -> None:
    refused(api("POST", "networks/", {}), 400, "object_expected")


def test_the_same_key_gives_the_same_network(api: Api) -> None:
    first = api("POST", "networks/", BLUE, Idempotency_Key="k")
    again = api("POST", "networks/", BLUE, Idempotency_Key="k")
    assert (first.status_code, again.json()) == (201, first.json())
    refused(api("POST", "networks/", BLUE), 409, "already_exists")


def test_applying_needs_a_managed_cluster(api: Api) -> None:
    refused(api("POST", "networks/", BLUE | {"applied": True}), 409, "not_managed")
    cluster = Cluster.objects.get()
    Connection.objects.create(cluster=cluster, server="https://x", mode=Mode.MANAGED, due_at=Now())
    wrong = api("POST", "networks/", BLUE | {"applied": True, "name": "blue"})
    refused(wrong, 400, "logical_name")
    assert create_network(api, applied=True)["applied"] is True


def test_changes(api: Api) -> None:
    document = create_network(api)
    path = f"networks/{document['id']}/"
    changed = api("PATCH", path, {**BLUE, "description": "for the move", "namespaces": ["a", "b"]})
    assert changed.status_code == 200, changed.content
    assert changed.json()["description"] == "for the move"
    assert changed.json()["namespace_selector"]["matchExpressions"][0]["values"] == ["a", "b"]
    for body in ({"subnets": ["10.0.0.0/15"]}, {"name": "x"}, {"cluster": "other"}):
        refused(api("PATCH", path, body), 409, "immutable_in_use")
    assert api("PATCH", path, {"id": 7}).json()["code"] == "read_only_field"
    assert api("PATCH", path, {"description": "\u0000"}).status_code == 400


def test_what_the_cluster_decides(api: Api) -> None:
    document = create_network(api)
    Network.objects.update(follows_cluster=True, uid="u")
    path = f"networks/{document['id']}/"
    for method, body in (("PATCH", {"subnets": []}), ("DELETE", None)):
        refused(api(method, path, body), 409, "cluster_decides")
    assert api("PATCH", path, {"description": "d"}).status_code == 200


def test_deleting(api: Api) -> None:
    document = create_network(api)
    ippool = worlds.ippool(Network.objects.get())
    path = f"networks/{document['id']}/"
    problem = refused(api("DELETE", path), 409, "network_in_use")
    assert "the IPPool blue" in problem["detail"]
    ippool.delete()
    assert api("DELETE", path).status_code == 204
    assert api("GET", path).status_code == 404
    assert not PoolCIDR.objects.exists()


def test_the_manifest(api: Api) -> None:
    path = f"networks/{create_network(api)['id']}/manifest/"
    manifest = api("GET", path).json()
    assert manifest["metadata"] == {"name": "blue"}
    assert manifest["spec"]["network"]["layer2"]["defaultGatewayIPs"] == BLUE["default_gateways"]
    answer = api("GET", f"{path}?format=yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(answer.content) == manifest
    assert api("GET", f"{path}?format=xml").json()["code"] == "invalid_choice"
    nobody = network_names.get_or_create(Cluster.objects.get().pk, "unknown")
    assert api("GET", f"networks/{nobody.pk}/manifest/").status_code == 404


@pytest.mark.exhaustive
def test_filters(api: Api) -> None:
    blue = create_network(api)
    red = {"name": "cluster_udn_red", "subnets": ["10.8.0.0/16", "fd08::/64"], "lifecycle": None}
    create_network(api, **red, **BARE)
    create_network(api, name="shop_net", kind="udn", namespace="shop", namespaces=None)
    network_names.get_or_create(Cluster.objects.get().pk, "mentioned")
    nad = {"namespace": "team", "name": "blue", "allow_persistent_ips": True}
    NAD.objects.create(network_id=blue["id"], **nad)
    every = ["cluster_udn_blue", "cluster_udn_red", "shop_net"]
    for query, expected in {
        "": every,
        "cluster=prod&ordering=-name": every[::-1],
        "name=shop_net": every[2:],
        "kind=udn": every[2:],
        "namespace=team": every[:1],
        "namespace=shop": every[2:],
        "static_vms=true": [every[0], every[2]],
        "q=UDN_r": [every[1]],
        "q=10.8.7.7": [every[1]],
        "q=10.0.0.0/8": every,
        "q=fd08::/16": [every[1]],
        "known=false": ["mentioned"],
        "known=all&ordering=name": ["cluster_udn_blue", "cluster_udn_red", "mentioned", "shop_net"],
    }.items():
        assert names(api, query) == expected, query
    assert api("GET", "networks/?knwon=all").json()["code"] == "unknown_parameter"
    assert api("GET", "networks/?cluster=x").json()["code"] == "unknown_cluster"
    page = api("GET", "networks/?limit=2&fields=name,static_vms").json()
    assert set(page["results"][0]) == {"name", "static_vms"}
    following = api("GET", page["next"].partition("/api/v1/")[2]).json()
    assert [row["name"] for row in following["results"]] == every[2:]


@pytest.mark.exhaustive
def test_fit_for_the_database_is_that_of_python(api: Api) -> None:
    create_network(api)
    network = Network.objects.get()
    persistent = [[], [True], [False], [True, False]]
    values = [
        {}, {"lifecycle": ""}, {"topology": "layer3"}, {"role": "secondary"}, {"subnets": []},
        {"ipam_mode": "Disabled"}, {"ipam_mode": ""}, {"kind": ""}, {"gone_at": Now()},
    ]  # fmt: skip
    for nads in persistent:
        for value in values:
            Network.objects.update(
                **{"lifecycle": "Persistent", "topology": "layer2", "role": "primary",
                   "subnets": ["10.0.0.0/16"], "ipam_mode": "Enabled", "kind": "cudn",
                   "gone_at": None, **value}
            )  # fmt: skip
            network.refresh_from_db()
            network.nads.all().delete()
            for number, allowed in enumerate(nads):
                names = {"namespace": "a", "name": f"n{number}"}
                network.nads.create(**names, allow_persistent_ips=allowed)
            result = Network.objects.filter(networks.fitting_query(NAD.objects.all())).exists()
            assert result is networks.static_vm_check(network).ok, (nads, value)


@pytest.mark.exhaustive
def test_vm_owners_see_what_their_namespaces_use(api: Api) -> None:
    blue, red = create_network(api), create_network(api, name="cluster_udn_red")
    for network, space in ((blue, "mine"), (blue, "theirs"), (red, "theirs")):
        nad = {"namespace": space, "name": "n", "allow_persistent_ips": space != "mine"}
        NAD.objects.create(network_id=network["id"], **nad)
    owner = worlds.owner(Cluster.objects.get(), "mine")
    (result,) = owner("GET", "networks/").json()["results"]
    assert result["name"] == "cluster_udn_blue"
    assert [nad["namespace"] for nad in result["nads"]] == ["mine"]
    assert (result["pool"], result["namespace_selector"], result["conditions"]) == (None, None, [])
    assert [reason["code"] for reason in result["static_vms"]["reasons"]] == ["nad_not_persistent"]
    assert names(owner, "static_vms=true") == names(owner, "namespace=theirs") == []


@pytest.mark.exhaustive
def test_overlaps_with_pods_and_other_networks_are_shown(api: Api) -> None:
    create_network(api)
    create_network(api, name="cluster_udn_red")
    pods = {"mask_size": 24, "cidrs": [{"cidr": "10.0.0.0/8"}]}
    api.create("pools/", {"cluster": "prod", "name": "pods", "category": "pod", "ipv4": pods})
    rows = api("GET", "overlaps/?kind=vm-network").json()["results"]
    assert [row["cidr"] for row in rows] == ["10.0.0.0/8", "fd00::/64"]


def test_nads_of_a_network_that_nobody_watches(api: Api) -> None:
    document = create_network(api, nads=[{"namespace": "blue", "name": "blue"}])
    (nad,) = document["nads"]
    names = {"namespace": "blue", "name": "blue"}
    assert nad == names | {"role": "primary", "allow_persistent_ips": True}
    path = f"networks/{document['id']}/"
    changed = api("PATCH", path, {"nads": [{"namespace": "red", "name": "blue"}]}).json()
    assert [nad["namespace"] for nad in changed["nads"]] == ["red"]
    bad = api("PATCH", path, {"nads": [{"namespace": "a.b", "name": "blue"}]}).json()
    assert (bad["code"], bad["errors"][0]["field"]) == ("k8s_name", "nads.0.namespace")
    NAD.objects.update(uid="u1")  # the cluster tells of it now
    assert len(api("PATCH", path, {"nads": []}).json()["nads"]) == 1
    Network.objects.update(follows_cluster=True)
    refused(api("PATCH", path, {"nads": [names]}), 409, "cluster_decides")


def test_a_network_goes_with_the_nads_that_were_said_by_hand(api: Api) -> None:
    document = create_network(api, nads=[{"namespace": "blue", "name": "blue"}])
    assert api("DELETE", f"networks/{document['id']}/").status_code == 204


@pytest.mark.parametrize("scope", [{}, {"address_space": "prod"}])
def test_no_address_of_a_network_is_a_free_prefix(api: Api, scope: dict[str, str]) -> None:
    create_network(api)
    container = api.create("containers/", {"cidr": "10.0.0.0/15", **scope})["id"]
    free = api("GET", f"containers/{container}/available-prefixes/?prefix_length=16").json()
    assert free["results"] == ["10.1.0.0/16"]
    body = {"prefix_length": 17, "purpose": "container"}
    for expected in ("10.1.0.0/17", "10.1.128.0/17"):
        created = api.create(f"containers/{container}/next-prefix/", body)
        assert created["cidr"] == expected
    assert api("POST", f"containers/{container}/next-prefix/", body).status_code == 409
