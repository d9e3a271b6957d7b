"""What a file says is in use is handed out to nobody after the commit, whatever happened to its row."""

from collections.abc import Collection

import pytest

from claims.imports import drafts as import_drafts
from claims.models import Entry, IPPool, Network, VMImport
from pools.models import Block, ReservedRange
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import counts, mac, row
from tests.claims.worlds import BY


@pytest.fixture
def network() -> Network:
    """Its first two addresses are OVN-Kubernetes' own."""
    return worlds.network(subnets=("10.0.0.0/28",))


def commit(network: Network, *rows: dict[str, object], skipped: Collection[int] = ()) -> VMImport:
    draft = drafts.draft(network, *rows)
    if skipped:
        import_drafts.IMPORTS.skip_rows(draft.pk, skipped, skipped=True, author=BY)
    return import_drafts.IMPORTS.commit(draft.pk, skip_bad=True, author=BY)


def allocated(network: Network, count: int) -> set[str]:
    """Return the addresses that the allocator hands out next."""
    assert network.pool is not None
    for number in range(count):
        factories.take(network.pool, factories.holder(f"vm-{number}"))
    blocks = Block.objects.filter(pool=network.pool, state="held", holder_id__startswith="vm-")
    return {str(cidr.network_address) for cidr in blocks.values_list("cidr", flat=True)}


ROWS = (
    row("web", mac(1), "10.0.0.3"),
    row("skipped", mac(2), "10.0.0.4"),
    row("no MAC", "00:00:00:00:00:00", "10.0.0.5"),
    row("odd", mac(4), "10.0.0.6:8080"),
    row("twice", mac(5), "10.0.0.7"),
    row("again", mac(6), "10.0.0.7"),
    row("elsewhere", mac(7), "10.9.9.9"),
)


def test_nobody_gets_them_and_the_undo_gives_them_back(network: Network) -> None:
    committed = commit(network, *ROWS, skipped=[2])
    assert counts(committed)["new"] == 1
    ranges = ReservedRange.objects.filter(pool=network.pool).order_by("first")
    assert [(str(r.first), r.reason) for r in ranges] == [
        ("10.0.0.4", f"in use, not imported: skipped ({committed})"),
        ("10.0.0.5", f"in use, not imported: no-mac ({committed})"),
        ("10.0.0.6", f"in use, not imported: odd ({committed})"),
        ("10.0.0.7", f"in use, not imported: twice ({committed})"),
    ]
    assert not allocated(network, 5) & {"10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"}
    import_drafts.IMPORTS.undo(committed.pk, author=BY)
    assert not ranges.all().exists()


def test_the_same_file_again_reserves_nothing_twice_and_a_later_one_gets_them(
    network: Network,
) -> None:
    first = commit(network, *ROWS, skipped=[2])
    commit(network, *ROWS, skipped=[2])
    assert ReservedRange.objects.filter(pool=network.pool).count() == 4
    later = commit(network, row("skipped", mac(2), "10.0.0.4"), row("twice", mac(5), "10.0.0.7"))
    assert counts(later) == {"new": 2}
    assert {*Entry.objects.values_list("vm", flat=True)} == {"web", "skipped", "twice"}
    remaining = ReservedRange.objects.filter(pool=network.pool).values_list("first", flat=True)
    assert {*map(str, remaining)} == {"10.0.0.5", "10.0.0.6"}
    assert IPPool.objects.get().duplicate_ips == 0
    import_drafts.IMPORTS.undo(first.pk, author=BY)
    assert not ReservedRange.objects.filter(pool=network.pool).exists()


def test_what_somebody_has_is_not_reserved(network: Network) -> None:
    commit(network, row("web", mac(1), "10.0.0.3"))
    commit(network, row("other", mac(2), "10.0.0.3"))
    assert not ReservedRange.objects.filter(pool=network.pool).exists()


def test_an_owners_import_reserves_nothing(network: Network) -> None:
    draft = drafts.draft(network, *ROWS)
    VMImport.objects.filter(pk=draft.pk).update(limited=True)
    import_drafts.IMPORTS.commit(draft.pk, skip_bad=True, author=BY)
    assert not ReservedRange.objects.filter(pool=network.pool).exists()
