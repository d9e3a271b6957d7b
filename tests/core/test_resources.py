"""URL paths of kinds, and which rights are needed, by kinds and managed resources."""

import pytest

from pools.core.kubernetes import resources

SEEN = (
    resources.CILIUM_POD_IP_POOL,
    resources.CILIUM_POD_IP_POOL_V2ALPHA1,
    resources.CILIUM_NODE,
)
READ = {"get namespaces"} | {
    f"{verb} {plural}.cilium.io"
    for verb in ("get", "list", "watch")
    for plural in ("ciliumpodippools", "ciliumnodes")
}


@pytest.mark.parametrize(
    ("managed_resources", "more"),
    [
        ((), set()),
        (("pools",), {"create ciliumpodippools.cilium.io", "patch ciliumpodippools.cilium.io"}),
        (("pod-cidrs",), {"update ciliumnodes.cilium.io", "update ciliumnodes.cilium.io/status"}),
        (("claims", "ippool-status"), set()),  # no handler reads these kinds
    ],
    ids=["none", "pools", "pod-cidrs", "not-read"],
)
def test_what_is_needed(managed_resources: tuple[str, ...], more: set[str]) -> None:
    rights = resources.required_rights(SEEN, managed_resources)
    assert {str(right) for right in rights} == READ | more
    namespaces = resources.NAMESPACE.reads_for
    assert {right.needed_for for right in rights} <= {"reading", namespaces, *managed_resources}


def test_a_right_of_two_managed_resources_is_asked_for_once() -> None:
    rights = resources.required_rights(SEEN, ("pools", "conversion"))
    patch = [right for right in rights if right.verb == "patch"]
    assert [right.needed_for for right in patch] == ["pools, conversion"]
    assert {right.resource.version for right in patch} == {"v2"}


@pytest.mark.parametrize(
    ("managed_resources", "expected"),
    [
        ((), set()),
        (("pools",), {"create", "patch"}),
        (("pools", "conversion"), {"create", "patch"}),
    ],
)
def test_networks_made_here_are_written_to_every_managed_cluster(
    managed_resources: tuple[str, ...], expected: set[str]
) -> None:
    kind = resources.Resource("k8s.ovn.org", "v1", "cudns", "ClusterUserDefinedNetwork")
    rights = resources.required_rights((*SEEN, kind), managed_resources)
    writes = [right for right in rights if right.resource == kind and right.needed_for != "reading"]
    assert {write.verb for write in writes} == expected
    assert {write.needed_for for write in writes} <= {"networks made here"}


def test_what_passes_do_without_is_said() -> None:
    kind = resources.Resource("g", "v1", "bindings", "Binding", reads_for="VM owners")
    rights = [right for right in resources.required_rights((*SEEN, kind), ()) if right.optional]
    assert [str(right) for right in rights] == [
        "get bindings.g",
        "list bindings.g",
        "watch bindings.g",
        "get namespaces",
    ]
    assert {right.needed_for for right in rights[:3]} == {"VM owners"}
