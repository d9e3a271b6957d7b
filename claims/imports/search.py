"""Rows of an import by a part of a VM's name, a MAC address or an address."""

from __future__ import annotations

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.models import ImportRow


def matching_rows(rows: QuerySet[ImportRow], words: str) -> QuerySet[ImportRow]:
    """Rows in whose source or values the words stand, whatever signs a MAC is written with."""
    lower = words.strip().lower()
    rows = rows.annotate(mac_text=Cast("mac", TextField()), ips_text=Cast("ips", TextField()))
    return rows.filter(
        Q(vm__icontains=lower)
        | Q(source_vm__icontains=lower)
        | Q(port_group__icontains=lower)
        | Q(source_mac__icontains=lower)
        | Q(mac_text__contains=lower.replace("-", ":"))
        | Q(ips_text__contains=lower)
    )
