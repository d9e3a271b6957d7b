"""Bars of time of MAC entries and claims: what they named when, and who held their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from ipaddress import ip_interface
from itertools import groupby
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from claims.models import Entry, EntryEvent, IPAMClaim, IPAMClaimEvent
from claims.operations import history
from pools.admin import time_bars
from pools.admin.time_bars import Segment, SegmentRow, TimeBar
from pools.register.history import addresses


def of_entry(request: HttpRequest, entry: Entry) -> TimeBar:
    """Return the versions of an entry, and the holders of its addresses if the user may view blocks."""
    versions = history.past_versions(EntryEvent, entry.pk, request.user)
    row = SegmentRow(str(entry.mac), list(_segments(versions)))
    return _bar(request, row, entry.ips, entry.ippool.cluster_id)


def of_claim(request: HttpRequest, claim: IPAMClaim) -> TimeBar:
    """Return the versions of a claim, and the holders of its addresses if the user may view blocks."""
    versions = history.past_versions(IPAMClaimEvent, claim.pk, request.user)
    row = SegmentRow(claim.name, list(_segments(versions)))
    return _bar(request, row, claim.ips, claim.cluster_id)


def _segments(versions: Iterable[tuple[Any, datetime | None]]) -> Iterator[Segment]:
    """Yield a segment for each run of versions with the same VM and addresses."""
    for (vm, ips), run in groupby(versions, key=lambda version: _subject(version[0])):
        events = list(run)
        label = " ".join(part for part in (vm, ips) if part)
        state = "active" if ips else "pending"
        yield Segment(label, state, events[0][0].pgh_created_at, events[-1][1])


def _subject(event: Any) -> tuple[str, str]:
    vm = f"{event.namespace}/{event.vm}" if event.vm else ""
    return vm, ", ".join(event.ips)


def _bar(request: HttpRequest, row: SegmentRow, ips: Iterable[str], cluster_id: int) -> TimeBar:
    rows = [row]
    if request.user.has_perm("pools.view_block"):
        tenures = [
            tenure
            for ip in ips
            for tenure in addresses.find_holders(ip_interface(ip).ip, cluster_id=cluster_id)[1]
        ]
        held = time_bars.of_tenures(request, tenures)
        rows += held.all_rows if held else ()
    return TimeBar(rows, timezone.now())
