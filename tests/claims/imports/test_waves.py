"""Waves: who is in them, and what of them is not ready yet."""

from typing import Any

import pytest

from claims.models import Network, WaveVM
from claims.waves import readiness as wave_readiness, waves
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row
from tests.claims.worlds import BY
from tests.edges import api as apis


@pytest.fixture
def network(db: None) -> Network:
    created = worlds.network()
    created.nads.create(namespace="blue", name="blue", role="primary", allow_persistent_ips=True)
    return created


@pytest.fixture
def wave(network: Network) -> Any:
    return waves.create(network.cluster, "Saturday", author=BY)


def readiness(wave: Any) -> dict[str, tuple[str, set[str]]]:
    machines = wave_readiness.wave_readiness(wave).machines
    return {item.vm: (item.status, {code for code, _ in item.reasons}) for item in machines}


def test_each_vm_is_judged(network: Network, wave: Any) -> None:
    blue = worlds.ippool(network)
    worlds.entry(blue, mac(1), "10.0.0.11/24", vm="good", namespace="blue")
    worlds.entry(blue, mac(2), "10.0.0.12/24", vm="twin", namespace="blue")
    worlds.entry(blue, mac(3), "10.0.0.12/24", vm="other", namespace="blue")
    worlds.entry(blue, mac(4), "10.0.0.14/24", vm="foreign", namespace="green")
    worlds.entry(blue, mac(5), "10.0.0.15/24", vm="runs", namespace="blue")
    worlds.workload(network, "runs", mac(5), "10.0.0.99")
    worlds.claim(network, "claimed", "10.0.0.20/24", mac=mac(6))
    names = ("good", "twin", "absent", "runs", "claimed")
    vms = [("blue", name) for name in names] + [("green", "foreign")]
    assert waves.add(wave.pk, vms, author=BY) == 6
    assert waves.add(wave.pk, vms[:2], author=BY) == 0
    assert readiness(wave) == {
        "good": ("ready", set()),
        "twin": ("not-ready", {"duplicate_ip"}),
        "absent": ("not-ready", {"not_registered"}),
        "runs": ("warning", {"differing"}),
        "claimed": ("ready", set()),
        "foreign": ("not-ready", {"no_nad"}),
    }
    result = wave_readiness.wave_readiness(wave)
    assert not result.ready
    (fit,) = result.networks
    assert (fit.network, fit.vms, fit.reasons) == (network, 5, ())
    assert fit.free[4] > 200
    codes = {setting.code for setting in result.settings}
    assert {"preserve_static_ips", "udn_supports_mac", "namespace_label"} <= codes


def test_addresses_that_keep_a_vm_from_starting(wave: Any, network: Network) -> None:
    """As the webhook declines them."""
    Network.objects.update(subnets=["10.0.0.0/24", "fd00::/64"])
    network.refresh_from_db()
    blue = worlds.ippool(network)
    given = {
        "good": ("10.0.0.11/24", "fd00::11/64"),
        "family_missing": ("10.0.0.12/24",),
        "too_many_addresses": ("10.0.0.13/24", "10.0.0.14/24", "fd00::13/64"),
        "outside_subnet": ("10.1.0.15/24", "fd00::15/64"),
        "unusable_address": ("10.0.0.2/24", "fd00::16/64"),
    }
    for number, (code, ips) in enumerate(given.items(), 1):
        worlds.entry(blue, mac(number), *ips, vm=code.replace("_", "-"), namespace="blue")
    waves.add(wave.pk, [("blue", code.replace("_", "-")) for code in given], author=BY)
    expected = {code.replace("_", "-"): ("not-ready", {code}) for code in given}
    expected["unusable-address"][1].add("duplicate_ip")  # the management port has it
    assert readiness(wave) == expected | {"good": ("ready", set())}


def test_a_network_that_cannot_hold_static_vms_is_told(network: Network, wave: Any) -> None:
    Network.objects.update(lifecycle="")
    worlds.entry(worlds.ippool(network), mac(1), "10.0.0.11/24", vm="good", namespace="blue")
    waves.add(wave.pk, [("blue", "good")], author=BY)
    assert readiness(wave) == {"good": ("not-ready", {"network_unfit"})}


def test_the_vms_of_an_import(network: Network, wave: Any) -> None:
    rows = row("Web 01", mac(1), "10.0.0.11"), row("web-02", mac(2), "10.0.0.1")
    of = drafts.draft(network, *rows)
    assert waves.add_import(wave.pk, of, author=BY) == 1
    assert waves.add_import(wave.pk, of, statuses=["conflict"], author=BY) == 1
    values = WaveVM.objects.values_list("vm", "source_vm", "namespace")
    assert set(values) == {("web-01", "Web 01", "blue"), ("web-02", "web-02", "blue")}


def test_over_rest(network: Network, api: apis.Api) -> None:
    created = api.create("waves/", {"cluster": "prod", "name": "=Saturday"})
    again = api("POST", "waves/", {"cluster": "prod", "name": "=Saturday"})
    apis.refused(again, 409, "already_exists")
    place = f"waves/{created['id']}/"
    vms = [{"namespace": "blue", "vm": "web-01"}, {"vm": "web-02"}]
    assert api("POST", f"{place}vms/", {"vms": vms}).json() == {"added": 2, "vms": 2}
    report = api("GET", f"{place}readiness/").json()
    assert (report["ready"], report["counts"]["not-ready"]) == (False, 2)
    text = api("GET", f"{place}readiness/?format=csv").content.decode()
    assert text.splitlines()[1].startswith(",web-02,,not-ready,")
    planned = {"planned_at": "2026-12-05T22:00:00Z", "name": "Sunday"}
    assert api("PATCH", place, planned).json()["planned_at"] == "2026-12-05T22:00:00Z"
    (first, _) = api("GET", f"{place}vms/").json()["results"]
    assert api("DELETE", f"{place}vms/{first['id']}/").status_code == 204
    apis.refused(api("DELETE", f"{place}vms/{first['id']}/"), 404, "not_found")
    assert api("DELETE", place).status_code == 204
    assert api("GET", "waves/").json()["results"] == []


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"vms": []}, "wrong_type"),
        ({"vms": [1]}, "wrong_type"),
        ({"vms": [{"namespace": "blue"}]}, "required"),
        ({"vms": [{"vm": "Not A Name"}]}, "k8s_name"),
        ({"vms": [{"vm": "x"}], "import": 1}, "required"),
        ({"import": 999}, "unknown_import"),
        ({"import": True}, "wrong_type"),
        ({"import": 1, "status": "good"}, "invalid_choice"),
    ],
)
def test_what_is_no_vm(network: Network, wave: Any, body: Any, code: str, api: apis.Api) -> None:
    apis.refused(api("POST", f"waves/{wave.pk}/vms/", body), 400, code)
    assert not WaveVM.objects.exists()
