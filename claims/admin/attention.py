"""What of VM networks needs attention: one line for each trouble, with its number and its list."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from claims.admin import scoped
from claims.ipamclaims import states
from claims.models import NAD, IPAMClaim, IPPool, Network
from claims.networks import networks
from pools.admin.overview.attention import Attention
from pools.platform.admin import display


def lines(request: HttpRequest) -> Iterator[Attention]:
    """For those who see every namespace; VM owners have their own start page."""
    if not scoped.request_scope(request).everything:
        return
    yield from _duplicates()
    yield from _claims()
    yield from _unfit()
    yield from _without_network()


def _duplicates() -> Iterator[Attention]:
    summed = IPPool.objects.aggregate(mac=Sum("duplicate_macs"), ip=Sum("duplicate_ips"))
    for kind, singular, plural in (
        ("ip", "address is claimed twice", "addresses are claimed twice"),
        ("mac", "MAC address has two entries", "MAC addresses have two entries"),
    ):
        if count := summed[kind]:
            url = reverse("admin:claims_entry_changelist", query={"duplicate": kind})
            yield Attention(
                "bad", _count(count, singular, plural), "", url, gettext("MAC entries"), url
            )


def _claims() -> Iterator[Attention]:
    rows = states.with_state(IPAMClaim.objects.filter(gone_at=None))
    for state, level, singular, plural in (
        (states.CONFLICT, "bad", "claim is in conflict", "claims are in conflict"),
        (states.FAILED, "bad", "claim failed", "claims failed"),
        (states.LEAKED, "warn", "orphaned claim (VM deleted)", "orphaned claims (VMs deleted)"),
    ):
        if count := rows.filter(state=state).count():
            url = reverse("admin:claims_ipamclaim_changelist", query={"state": state})
            yield Attention(level, _count(count, singular, plural), "", url, gettext("Claims"), url)


def _unfit() -> Iterator[Attention]:
    used = Q(ippool__entries__isnull=False)
    rows = Network.objects.exclude(kind="").exclude(networks.fitting_query(NAD.objects.all()))
    if count := rows.filter(used).distinct().count():
        url = reverse("admin:claims_network_changelist", query={"static": "no"})
        words = ngettext(
            "%(count)s network has MAC entries and cannot hold static VMs",
            "%(count)s networks have MAC entries and cannot hold static VMs",
            count,
        ) % {"count": display.digits(count)}
        yield Attention("warn", words, "", url, gettext("Networks"), url)


def _without_network() -> Iterator[Attention]:
    rows = IPPool.objects.filter(Q(network__kind="") | Q(network__gone_at__isnull=False))
    if count := rows.count():
        url = reverse("admin:claims_network_changelist", query={"known": "false"})
        words = ngettext(
            "%(count)s IPPool names a network that no cluster has",
            "%(count)s IPPools name networks that no cluster has",
            count,
        ) % {"count": display.digits(count)}
        yield Attention("warn", words, "", url, gettext("Networks"), url)


def _count(number: int, singular: str, plural: str) -> str:
    return f"{display.digits(number)} {singular if number == 1 else plural}"
