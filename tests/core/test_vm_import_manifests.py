"""IPPools and IPAMClaims as files: each entry and each claim a row."""

from __future__ import annotations

from typing import Any

import pytest

from claims.core.vm_import import inventory
from pools.platform import documents

MAC, MAC_2 = "00:50:56:83:25:47", "00:50:56:83:25:48"
HEAD = "apiVersion: ippool.k8s.cni.cncf.io/v1alpha\nkind: IPPool\nmetadata: {name: p}\n"


def _pool(entries: str) -> dict[str, Any]:
    text = f"{HEAD}spec:\n  network-name: prod\n  entries:\n{entries}"
    (document,) = documents.load_yaml(text, repeatable=[("spec", "entries")])
    return document.data


def _claim(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "web-01.prod", "namespace": "ns", "labels": {"kubevirt.io/vm": "web-01"}}
    return {"kind": "IPAMClaim", "metadata": metadata, "spec": {"network": "prod", **spec}}


def test_entries_of_a_pool() -> None:
    pool = _pool(f'    "{MAC}": [10.0.0.1/24, "2001:db8::1/64"]\n    "{MAC_2}": [127.0.0.1/8]\n')
    vm_interfaces = list(inventory.manifest_rows([pool]))
    assert [
        (vm_interface.row, vm_interface.mac, vm_interface.ips, vm_interface.port_group)
        for vm_interface in vm_interfaces
    ] == [
        (1, MAC, ("10.0.0.1/24", "2001:db8::1/64"), "prod"),
        (2, MAC_2, ("127.0.0.1/8",), "prod"),
    ]
    assert not any(vm_interface.problems for vm_interface in vm_interfaces)


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (f'"{MAC}": 10.0.0.1/24', "wrong_type"),
        (f'"{MAC}": [1]', "wrong_type"),
        ('"mac": [10.0.0.1/24]', "mac_syntax"),
        (f'"{MAC}": [010.0.0.1/24]', "leading_zero"),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_refused_row(entry: str, code: str) -> None:
    (result,) = inventory.manifest_rows([_pool(f"    {entry}\n")])
    assert result.refused
    assert [problem.code for problem in result.problems] == [code]


def test_a_claim() -> None:
    (result,) = inventory.manifest_rows([_claim(mac=MAC, ips=["10.0.0.1/24"])])
    assert (result.vm, result.mac, result.ips) == ("web-01", MAC, ("10.0.0.1/24",))
    assert (result.namespace, result.port_group, result.problems) == ("ns", "prod", ())


def test_a_claim_may_do_without_mac_and_addresses() -> None:
    claim = _claim() | {"status": {"ips": ["10.0.0.7/24"]}}
    with_status, bare = inventory.manifest_rows([claim, _claim()])
    assert with_status.ips == ("10.0.0.7/24",)
    assert [problem.code for problem in bare.problems] == ["no_address"]
    assert not bare.refused


@pytest.mark.parametrize(
    "manifest", ["text", {}, {"kind": "Pod"}, {"kind": "IPPool"}, _claim(network="")]
)
def test_anything_else_is_a_refused_row(manifest: object) -> None:
    (result,) = inventory.manifest_rows([manifest])
    assert result.refused
    assert result.problems


def test_rows_are_numbered_over_all_objects() -> None:
    pool = _pool(f'    "{MAC}": [10.0.0.1/24]\n    "{MAC_2}": [10.0.0.2/24]\n')
    listed = inventory.objects([{"kind": "List", "items": [pool, _claim()]}, pool])
    assert [vm_interface.row for vm_interface in inventory.manifest_rows(listed)] == [1, 2, 3, 4, 5]
