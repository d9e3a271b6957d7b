"""Every name that a page prints is found when it is pasted into Find."""

import re

import pytest

from claims.models import NAD, Entry, IPAMClaim, IPPool, Network, Workload
from pools.models import Block, BlockState, Environment, Pool, ReservedRange
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = (
    "/admin/", "/admin/pools/pool/", "/admin/pools/block/", "/admin/pools/environment/",
    "/admin/pools/cluster/", "/admin/pools/event/", "/admin/pools/allocationrequest/",
    "/admin/pools/leak/", "/admin/claims/network/", "/admin/claims/ippool/", "/admin/claims/entry/",
    "/admin/claims/ipamclaim/", "/admin/claims/workload/",
)  # fmt: skip
# Links to what Find is for: objects of the register, and searches.
_LABELS = r"""() => [...document.querySelectorAll('#content a[href]')]
    .filter(link => /\/(find\/\?q=|(cluster|pool|block|environment|network|ippool|entry|ipamclaim|workload)\/\d+\/change\/)/
        .test(link.getAttribute('href')) && !link.closest('svg, .cad-alerts'))
    .map(link => link.innerText.trim()).filter(text => text && !text.includes('\n'))"""
# Not names: what a link does, a time, a number, the user of a duplicate address.
_WORDS = re.compile(
    r"\d+ .*|now|.* of .* in .*|.*(page|see|open|all|edit|history|show|look).*", re.IGNORECASE
)


def _is_found(visit: Visit, label: str) -> bool:
    visit.page.fill("#find", label)
    visit.page.press("#find", "Enter")
    visit.page.wait_for_load_state()
    return visit.page.get_by_text("No results for").count() == 0


def test_each_kind_of_label(visit: Visit) -> None:
    env = Environment.objects.exclude(org="").first()
    pool, network = (
        Pool.objects.get(name="yellow-pool"),
        Network.objects.exclude(namespace="").first(),
    )
    holder = Block.objects.filter(state=BlockState.HELD, holder_kind="node").first()
    entry, claim = Entry.objects.exclude(vm="").first(), IPAMClaim.objects.exclude(vm="").first()
    workload, nad = Workload.objects.first(), NAD.objects.first()
    span = ReservedRange.objects.first()
    labelled = [env, pool, holder, entry, claim, workload, nad, span]
    assert all(labelled)
    ippool = IPPool.objects.first()
    labels = [
        str(env), env.org, env.env, str(pool), pool.name, pool.cluster.name,
        holder.holder_id, f"node {holder.holder_id}", str(holder.cidr),
        entry.mac, entry.ips[0], f"{entry.namespace}/{entry.vm}", f"VM {entry.namespace}/{entry.vm}",
        str(claim), claim.name, f"{claim.namespace}/{claim.vm}", str(workload), str(nad), str(span),
        str(nad.network), nad.network.name, str(ippool), ippool.name,
    ]  # fmt: skip
    if network is not None:
        labels.append(f"{network.namespace}/{network.object_name}")
    visit.open("/admin/find/")
    assert [label for label in labels if not _is_found(visit, label)] == []


def test_what_the_lists_print(visit: Visit) -> None:
    labels: dict[str, str] = {}
    for path in LISTS:
        visit.open(path)
        printed = dict.fromkeys(visit.page.evaluate(_LABELS))
        names = [label for label in printed if not _WORDS.fullmatch(label)]
        labels |= {label: path for label in names[:12] + names[-3:] if label not in labels}
    assert len(labels) > 60
    visit.open("/admin/find/")
    missing = {label: path for label, path in labels.items() if not _is_found(visit, label)}
    assert missing == {}


@pytest.mark.parametrize("spelling", ["02:42:0a:80:00:05", "0242.0a80.0005", "02-42-0a-80-00-05"])
def test_a_mac_is_not_told_that_it_is_no_address(visit: Visit, spelling: str) -> None:
    visit.open(f"/admin/find/?q={spelling}")
    assert "Showing" not in visit.page.locator("#content").inner_text()
