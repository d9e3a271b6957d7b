"""Search in IPAMClaims."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.address_index.lookup import by_mac as lookup_by_mac
from claims.core import macs
from claims.models import IPAMClaim
from pools.core import errors

# Characters of MAC addresses, and of lists of addresses as PostgreSQL writes them.
_ADDRESS_PART = re.compile(r'[0-9a-f:./{},"]+')


def matching_claims(rows: QuerySet[IPAMClaim], text: str) -> QuerySet[Any]:
    """Return the claims whose name, VM, MAC or address contains `text`, or whose namespace is `text`."""
    text = text.strip().lower()
    with contextlib.suppress(errors.InvalidInput):
        index_entries = lookup_by_mac(macs.parse_mac(text, lenient=True))
        ids = list(index_entries.filter(claim__isnull=False).values_list("claim_id", flat=True))
        if ids:  # otherwise it may be that of a claim that is gone
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
