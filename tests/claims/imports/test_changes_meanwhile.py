"""What changes between a draft and its commit: networks, their subnets, and what other imports write."""

from collections.abc import Callable

import pytest

from claims.imports import drafts as import_drafts, formats
from claims.models import Entry, Network, VMImport
from claims.networks import networks
from pools.core import errors
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row, statuses
from tests.claims.worlds import BY

pytestmark = pytest.mark.django_db


@pytest.fixture
def network() -> Network:
    return worlds.network()


def draft(network: Network, ip: str) -> VMImport:
    return drafts.draft(network, row("web", mac(1), ip))


def committed(of: VMImport) -> VMImport:
    return import_drafts.IMPORTS.commit(of.pk, author=BY)


def resized(network: Network, *subnets: str) -> None:
    Network.objects.filter(pk=network.pk).update(subnets=list(subnets))


CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "another subnet": (("10.9.0.0/24",), "outside_subnet"),
    "a second family": (("10.0.0.0/24", "fd00::/64"), "family_missing"),
    "no longer its subnet": (("10.0.0.0/29",), "outside_subnet"),
}


@pytest.mark.parametrize(("subnets", "code"), CHANGES.values(), ids=CHANGES)
def test_addresses_that_its_network_no_longer_has(
    network: Network, subnets: tuple[str, ...], code: str
) -> None:
    of = draft(network, "10.0.0.11")
    resized(network, *subnets)
    with pytest.raises(errors.ImportHasBadRows):
        committed(of)
    assert statuses(of) == {1: ("invalid", {code})}  # the draft shows what refused it
    assert not Entry.objects.exists()


def test_a_prefix_length_is_that_of_the_network_at_the_commit(network: Network) -> None:
    of = draft(network, "10.0.0.11")
    resized(network, "10.0.0.0/16")
    committed(of)
    assert Entry.objects.get().ips == ["10.0.0.11/16"]
    import_drafts.IMPORTS.undo(of.pk, author=BY)
    assert not Entry.objects.exists()


def test_an_undo_after_the_subnet_has_changed(network: Network) -> None:
    of = committed(draft(network, "10.0.0.11"))
    resized(network, "10.0.0.0/16")
    import_drafts.IMPORTS.undo(of.pk, author=BY)
    assert not Entry.objects.exists()


def _check(of: VMImport) -> None:
    import_drafts.IMPORTS.revalidate(of.pk, author=BY)


def _correct(of: VMImport) -> None:
    import_drafts.IMPORTS.correct_row(of.pk, 2, {"ips": ["10.1.0.13"]}, author=BY)


def _skip(of: VMImport) -> None:
    import_drafts.IMPORTS.skip_rows(of.pk, [2], skipped=True, author=BY)


@pytest.mark.parametrize("step", [_check, _correct, _skip, committed])
def test_a_network_that_was_deleted(network: Network, step: Callable[[VMImport], object]) -> None:
    """The second row is of the same VM, and its network is there."""
    other = worlds.network("red", subnets=("10.1.0.0/24",), role="secondary")
    rows = [row("web", mac(1), "10.0.0.11"), row("web", mac(2), "10.1.0.12", network="red")]
    of = drafts.draft(network, *rows, mapping={"red": other.pk})
    networks.delete(network, author=BY)
    try:
        step(of)
    except errors.ImportHasBadRows:
        assert step is committed
    expected = {1: ("invalid", {"unmapped_port_group"}), 2: ("new", set())}
    assert statuses(of) == (expected | {2: ("left_out", set())} if step is _skip else expected)
    again = worlds.network()  # made again: it has another id
    import_drafts.change_mapping(of.pk, {"network": again}, author=BY)
    assert statuses(of)[1] == ("new", set())


def test_a_port_group_that_another_import_has_mapped_elsewhere(network: Network) -> None:
    """Nothing is written elsewhere than the draft says; the second commit is of what it says then."""
    red = worlds.network("red", subnets=("10.0.0.0/16",))
    upload = formats.rows_upload([row("web", mac(1), "10.0.0.11", network="VLAN 7")])

    def mapped(**mapping: int) -> VMImport:
        new = VMImport(cluster=network.cluster, namespace="blue", mapping=mapping)
        return import_drafts.IMPORTS.create([upload], new, author=BY)

    mapped(**{"VLAN 7": network.pk})
    of = mapped()
    mapped(**{"VLAN 7": red.pk})
    with pytest.raises(errors.ImportHasBadRows, match="has changed since: 1"):
        import_drafts.IMPORTS.commit(of.pk, skip_bad=True, author=BY)
    assert (of.rows.get().network_id, Entry.objects.exists()) == (red.pk, False)
    committed(of)
    assert Entry.objects.get().ippool.network_id == red.pk


def test_rows_of_which_none_was_good_in_the_draft_are_written(network: Network) -> None:
    first = committed(draft(network, "10.0.0.11"))
    of = drafts.draft(network, row("db", mac(2), "10.0.0.11"))
    assert statuses(of) == {1: ("conflict", {"duplicate_ip"})}
    import_drafts.IMPORTS.undo(first.pk, author=BY)
    committed(of)
    assert (Entry.objects.get().vm, of.rows.get().written) == ("db", True)


def test_a_network_that_its_cluster_no_longer_has(network: Network) -> None:
    of = draft(network, "10.0.0.11")
    networks.mark_gone(network, author=BY)
    committed(of)
    assert statuses(of) == {1: ("new", {"gone"})}


def test_two_imports_of_one_vm(network: Network) -> None:
    first, second = draft(network, "10.0.0.11"), draft(network, "10.0.0.12")
    committed(first)
    changed = committed(second)
    assert statuses(changed) == {1: ("changed", {"differs"})}
    with pytest.raises(errors.ImportInUse, match="was changed since"):
        import_drafts.IMPORTS.undo(first.pk, author=BY)
    import_drafts.IMPORTS.undo(second.pk, author=BY)
    assert Entry.objects.get().ips == ["10.0.0.11/24"]
    import_drafts.IMPORTS.undo(first.pk, author=BY)
    assert not Entry.objects.exists()
