"""Overview lines of VM networks: one line for each kind of problem, with its count and a link to its list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext, ngettext_lazy

from claims.admin import scoped
from claims.ipamclaims import states
from claims.models import NAD, IPAMClaim, IPPool, Network
from claims.networks import networks
from pools.admin.overview.attention import Attention
from pools.platform.admin import display

_CLAIM_STATE_TEXTS = (
    (
        states.CONFLICT,
        "bad",
        ngettext_lazy(
            "%(number)s claim is in conflict", "%(number)s claims are in conflict", "count"
        ),
    ),
    (
        states.FAILED,
        "bad",
        ngettext_lazy("%(number)s claim failed", "%(number)s claims failed", "count"),
    ),
    (
        states.LEAKED,
        "warn",
        ngettext_lazy(
            "%(number)s orphaned claim (VM deleted)",
            "%(number)s orphaned claims (VMs deleted)",
            "count",
        ),
    ),
)


def lines(request: HttpRequest) -> Iterator[Attention]:
    """Yield the lines, for users who see every namespace; VM owners have their own start page."""
    if not scoped.request_scope(request).everything:
        return
    yield from _duplicate_addresses()
    yield from _claims_with_problems()
    yield from _unsuitable_networks()
    yield from _ippools_without_network()


def _duplicate_addresses() -> Iterator[Attention]:
    summed = IPPool.objects.aggregate(mac=Sum("duplicate_macs"), ip=Sum("duplicate_ips"))
    for kind, text in (
        (
            "ip",
            ngettext_lazy(
                "%(number)s address is claimed twice",
                "%(number)s addresses are claimed twice",
                "count",
            ),
        ),
        (
            "mac",
            ngettext_lazy(
                "%(number)s MAC address has two entries",
                "%(number)s MAC addresses have two entries",
                "count",
            ),
        ),
    ):
        if count := summed[kind]:
            url = reverse("admin:claims_entry_changelist", query={"duplicate": kind})
            yield Attention("bad", _count_text(text, count), "", url, gettext("MAC entries"), url)


def _claims_with_problems() -> Iterator[Attention]:
    rows = states.with_state(IPAMClaim.objects.filter(gone_at=None))
    for state, level, text in _CLAIM_STATE_TEXTS:
        if count := rows.filter(state=state).count():
            url = reverse("admin:claims_ipamclaim_changelist", query={"state": state})
            yield Attention(level, _count_text(text, count), "", url, gettext("Claims"), url)


def _unsuitable_networks() -> Iterator[Attention]:
    used = Q(ippool__entries__isnull=False)
    rows = Network.objects.exclude(kind="").exclude(networks.fitting_query(NAD.objects.all()))
    if count := rows.filter(used).distinct().count():
        url = reverse("admin:claims_network_changelist", query={"static": "no"})
        text = ngettext(
            "%(count)s network has MAC entries and cannot hold static VMs",
            "%(count)s networks have MAC entries and cannot hold static VMs",
            count,
        ) % {"count": display.digits(count)}
        yield Attention("warn", text, "", url, gettext("Networks"), url)


def _ippools_without_network() -> Iterator[Attention]:
    rows = IPPool.objects.filter(Q(network__kind="") | Q(network__gone_at__isnull=False))
    if count := rows.count():
        url = reverse("admin:claims_network_changelist", query={"known": "false"})
        text = ngettext(
            "%(count)s IPPool names a network that no cluster has",
            "%(count)s IPPools name networks that no cluster has",
            count,
        ) % {"count": display.digits(count)}
        yield Attention("warn", text, "", url, gettext("Networks"), url)


def _count_text(text: Any, count: int) -> str:
    """Return a lazy plural text that uses `number`, with its count filled in."""
    return str(text % {"count": count, "number": display.digits(count)})
