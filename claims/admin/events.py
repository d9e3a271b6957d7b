"""Search of the event list for events of VM networks. Its readers may see every namespace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from claims.core import macs
from claims.models import EntryEvent, IPAMClaimEvent
from claims.operations import history
from pools.core import errors
from pools.platform.admin import large_tables, search_text


def search_events(searched: search_text.SearchText) -> Iterator[int]:
    """Yield the ids of the newest events of a MAC address, a VM (`namespace/name` or `name`) or a claim."""
    query = history.vm_query(searched.text)
    with contextlib.suppress(errors.InvalidInput):
        query |= Q(mac=macs.parse_mac(searched.text, lenient=True))
    for model, extra_query in ((EntryEvent, Q()), (IPAMClaimEvent, Q(name=searched.text))):
        rows: Any = model.objects.filter(query | extra_query).order_by("-pgh_id")
        yield from rows.values_list("pgh_id", flat=True)[: large_tables.REACH]
