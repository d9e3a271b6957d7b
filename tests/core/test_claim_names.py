"""How claims are called, and which VMs and networks would get one name."""

import pytest

from claims.core.ipamclaims import ipamclaim

LONG = "v" * 250


@pytest.mark.parametrize(
    ("vm", "network", "expected"),
    [
        ("vm1", "podnet", "vm1.podnet"),
        ("vm1", "random_net", "vm1.random.net"),
        ("vm1", "random.net", "vm1.random.net"),
        ("VM1", "PodNet", "vm1.podnet"),
        ("vm1", "cluster_udn_prod", "vm1.cluster.udn.prod"),
        ("a.b", "c", "a.b.c"),
        ("a", "b.c", "a.b.c"),
        ("vm1", "-net-", "vm1.net"),
        ("vm1", "net-_-x", "vm1.net.x"),
        ("vm-1", "a--b", "vm-1.a--b"),
        ("vm1", "", "vm1"),
        ("", "", ""),
        ("vm1", "nétwork", "vm1.n.twork"),
        (LONG, "ab", LONG + ".ab"),
        (LONG, "abc", LONG + ".ab"),
        ("v" * 252, "net", "v" * 252 + "."),
    ],
)
def test_names_are_made_as_ipam_extensions_makes_them(vm: str, network: str, expected: str) -> None:
    assert ipamclaim.compose_key(vm, network) == expected


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a.b", "c"), ("a", "b.c"), ("a", "b")], {"a.b.c": [("a.b", "c"), ("a", "b.c")]}),
        (
            [("vm1", "random_net"), ("vm1", "random.net")],
            {"vm1.random.net": [("vm1", "random_net"), ("vm1", "random.net")]},
        ),
        (
            [(LONG, "net-one"), (LONG, "net-two")],
            {LONG + ".ne": [(LONG, "net-one"), (LONG, "net-two")]},
        ),
        ([("vm1", "net"), ("vm1", "net")], {}),
        ([("vm1", "net"), ("vm2", "net")], {}),
    ],
    ids=["dots", "underscore", "cut", "the same twice", "different"],
)
def test_collisions(pairs: list[ipamclaim.Pair], expected: dict[str, list[ipamclaim.Pair]]) -> None:
    assert ipamclaim.name_collisions(pairs) == expected


@pytest.mark.parametrize(
    ("vm", "network", "codes"),
    [
        ("vm1", "podnet", []),
        ("vm1", "random_net", ["name_differs"]),
        (LONG, "network", ["name_cut"]),
        ("v" * 252, "net", ["name_impossible", "name_cut"]),
        ("", "", ["name_impossible", "name_differs"]),
    ],
)
def test_what_is_odd_about_a_name(vm: str, network: str, codes: list[str]) -> None:
    assert [problem.code for problem in ipamclaim.name_problems(vm, network)] == codes


@pytest.mark.parametrize(
    ("name", "network", "vm"),
    [
        ("vm1.blue", "blue", "vm1"),
        ("a.b.cluster.udn.prod", "cluster_udn_prod", "a.b"),
        ("vm1.cluster_udn_prod", "cluster_udn_prod", "vm1"),
        ("vm1.podnet", "cluster_udn_prod", "vm1"),
        ("a.b.podnet", "cluster_udn_prod", "a.b"),
        ("v" * 250 + ".po", "cluster_udn_prod", ""),
        (".blue", "blue", ""),
        ("blue", "blue", ""),
        ("vm1", "", ""),
        ("vm1.x", "", ""),
    ],
)
def test_the_vm_of_a_name(name: str, network: str, vm: str) -> None:
    assert ipamclaim.vm_of(name, network) == vm


@pytest.mark.parametrize(
    ("name", "vm", "networks", "expected"),
    [
        ("vm1.podnet", "vm1", [], True),
        ("vm1.podnet", "vm1", ["podnet", "other"], True),
        ("vm1.blue", "vm1", ["podnet"], False),
        ("vm2.podnet", "vm1", [], False),
        ("vm1", "vm1", [], False),
        ("a.b.c", "a.b", [], True),
        ("a.b.c", "a", [], True),
        (LONG + ".ne", LONG, ["net-one"], True),
        ("v" * 253, "v" * 253 + "x", [], True),
    ],
)
def test_whether_a_name_may_be_a_vms(
    name: str, vm: str, networks: list[str], expected: bool
) -> None:
    assert ipamclaim.is_name_of(name, vm, networks) is expected
