"""Search in the rows of an import."""

from __future__ import annotations

import re

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.models import ImportRow

# Characters of MAC addresses, and of lists of addresses as PostgreSQL writes them.
_ADDRESS_PART = re.compile(r'[0-9a-f:./{},"-]+')


def matching_rows(rows: QuerySet[ImportRow], text: str) -> QuerySet[ImportRow]:
    """Return the rows whose VM, port group, MAC or address contains `text`; MACs in any notation."""
    lowered = text.strip().lower()
    query = (
        Q(vm__icontains=lowered)
        | Q(source_vm__icontains=lowered)
        | Q(port_group__icontains=lowered)
        | Q(source_mac__icontains=lowered)
    )
    if not _ADDRESS_PART.fullmatch(lowered):  # each further condition is evaluated for all rows
        return rows.filter(query)
    rows = rows.annotate(mac_text=Cast("mac", TextField()), ips_text=Cast("ips", TextField()))
    return rows.filter(
        query | Q(mac_text__contains=lowered.replace("-", ":")) | Q(ips_text__contains=lowered)
    )
