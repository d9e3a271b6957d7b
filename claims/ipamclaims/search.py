"""Search in IPAMClaims."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.address_index.lookup import by_address, by_mac
from claims.core import macs
from claims.models import IPAMClaim
from pools.core import addresses, errors

# Characters of MAC addresses, and of lists of addresses as PostgreSQL writes them.
_ADDRESS_PART = re.compile(r'[0-9a-f:./{},"]+')


def matching_claims(rows: QuerySet[IPAMClaim], text: str) -> QuerySet[Any]:
    """Return the claims whose name, VM, MAC or address contains `text`, or whose namespace is `text`."""
    text = text.strip().lower()
    if ids := _ids_by_index(text):  # otherwise it may be a part, or of a claim that is gone
        return rows.filter(pk__in=ids)
    query = Q(name__icontains=text) | Q(vm__icontains=text) | Q(namespace=text)
    if not _ADDRESS_PART.fullmatch(text):  # each further condition is evaluated for all claims
        return rows.filter(query)
    annotated_rows = rows.annotate(
        ips_text=Cast("ips", TextField()),
        asked_text=Cast("ips_requested", TextField()),
        mac_text=Cast("mac", TextField()),
    )
    return annotated_rows.filter(
        query
        | Q(ips_text__contains=text)
        | Q(asked_text__contains=text)
        | Q(mac_text__contains=text)
    )


def _ids_by_index(text: str) -> list[int]:
    """Return the claims that name a whole MAC or IP address, by the address index; no text is read for them."""
    for parse, lookup in ((_parse_mac, by_mac), (_parse_address, by_address)):
        with contextlib.suppress(errors.InvalidInput):
            index_entries = lookup(parse(text)).filter(claim__isnull=False)
            return list(index_entries.values_list("claim_id", flat=True))
    return []


def _parse_mac(text: str) -> str:
    return macs.parse_mac(text, lenient=True)


def _parse_address(text: str) -> str:
    return str(addresses.parse_address(text, source=addresses.InputSource.TEXT))
