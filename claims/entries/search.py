"""Entries by what people know of them."""

from __future__ import annotations

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.models import Entry, IndexEntry
from pools.core import addresses, errors


def matching_entries(rows: QuerySet[Entry], text: str) -> QuerySet[Entry]:
    """Those with an address (or an address in a CIDR), else with a part of their texts or MAC."""
    text = text.strip()
    lookup = _of_addresses(text)
    if lookup is None:
        return _by_text(rows, text)
    return rows.filter(pk__in=IndexEntry.objects.filter(**lookup).values("entry_id"))


def _of_addresses(text: str) -> dict[str, str] | None:
    """`10.0.0.5`, `10.0.0.5/24` (as entries have them) or a CIDR."""
    source = addresses.InputSource.TEXT
    try:
        if "/" in text:
            within = str(addresses.parse_block(text, source=source))
            return {"address__net_contained_or_equal": within}
    except errors.InvalidInput as error:
        if error.code != "host_bits_set":
            return None
    try:
        return {"address": str(addresses.parse_address(text.partition("/")[0], source=source))}
    except errors.InvalidInput:
        return None


def _by_text(rows: QuerySet[Entry], text: str) -> QuerySet[Entry]:
    namespace, slash, vm = text.partition("/")
    query = Q(vm__icontains=text) | Q(namespace__icontains=text) | Q(note__icontains=text)
    query |= Q(mac_text__contains=_spelling(text))
    if slash:
        query |= Q(namespace=namespace, vm__startswith=vm)
    return rows.annotate(mac_text=Cast("mac", TextField())).filter(query)


def _spelling(text: str) -> str:
    """A part of a MAC address as the register spells it, whatever separates its octets."""
    digits = text.lower().replace("-", "").replace(".", "").replace(":", "")
    grouped = any(mark in text for mark in "-.")
    if grouped and digits and all(char in "0123456789abcdef" for char in digits):
        return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
    return text.lower()
