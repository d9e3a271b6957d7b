"""Search of MAC entries."""

from __future__ import annotations

import contextlib
import re

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from claims.address_index.index import by_mac as lookup_by_mac
from claims.core import macs
from claims.models import Entry, IndexEntry
from pools.core import addresses, errors
from pools.platform import database
from pools.sql import statements

_MAC_PART = re.compile(r"[0-9a-fA-F:.-]+")
_NAMESPACES = statements.read("claims/used_namespaces")


def used_namespaces(limit: int) -> list[str]:
    """Return the first namespaces that entries name, in their order."""
    return [namespace for (namespace,) in database.rows(_NAMESPACES, {"most": limit})]


def matching_entries(rows: QuerySet[Entry], text: str) -> QuerySet[Entry]:
    """Return the entries that match an address, a CIDR or a MAC, else a part of a name, a note or a MAC."""
    text = text.strip()
    lookup = _address_lookup(text)
    if lookup is None:
        with contextlib.suppress(errors.InvalidInput):
            index_entries = lookup_by_mac(macs.parse_mac(text, lenient=True))
            ids = list(index_entries.filter(entry__isnull=False).values_list("entry_id", flat=True))
            if ids:  # otherwise a note may contain it
                return rows.filter(pk__in=ids)
        return _by_text(rows, text)
    return rows.filter(pk__in=IndexEntry.objects.filter(**lookup).values("entry_id"))


def _address_lookup(text: str) -> dict[str, str] | None:
    """Return the lookup for `10.0.0.5`, `10.0.0.5/24` (the form of entries) or a CIDR, else None."""
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
    if _MAC_PART.fullmatch(text):  # each condition is evaluated for all entries
        rows = rows.annotate(mac_text=Cast("mac", TextField()))
        query |= Q(mac_text__contains=_canonical_mac_part(text))
    if slash:
        query |= Q(namespace=namespace, vm__startswith=vm)
    return rows.filter(query)


def _canonical_mac_part(text: str) -> str:
    """Return a part of a MAC address in the stored spelling, whatever separates its octets."""
    digits = text.lower().replace("-", "").replace(".", "").replace(":", "")
    separated = any(mark in text for mark in "-.")
    if separated and digits and all(char in "0123456789abcdef" for char in digits):
        return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
    return text.lower()
