"""Search in IPAMClaims."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.models import IPAMClaim


def matching_claims(rows: QuerySet[IPAMClaim], text: str) -> QuerySet[Any]:
    """Return the claims whose name, VM, MAC or address contains `text`, or whose namespace is `text`."""
    text = text.strip().lower()
    query = Q(name__icontains=text) | Q(vm__icontains=text) | Q(namespace=text)
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
