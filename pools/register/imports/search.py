"""Search among the rows of an import."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from pools.models import RegisterRow


def matching_rows(rows: QuerySet[RegisterRow], text: str) -> QuerySet[RegisterRow]:
    """Return the rows that have the text in their source, their holder or their organization."""
    if "\0" in text:
        return rows.none()
    return rows.filter(
        Q(texts__icontains=text) | Q(holder_id__icontains=text) | Q(org__icontains=text)
    )
