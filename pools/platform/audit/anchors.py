"""Anchors: digests of the audit chain that are kept outside the database (docs/reference/history-and-audit.md).

An anchor is `SEGMENT:DIGEST`. The owner of the database can remove the end of the chain or write a new chain
that verifies by itself; an anchor that was kept elsewhere shows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pools.core import errors
from pools.models import AuditSegment

_FORM = re.compile(r"(?:(?P<segment>[0-9]{1,18}):)?(?P<digest>[0-9a-f]{64})")
_IN_TEXT = re.compile(r"(?<![0-9a-f:])([0-9]{1,18}:[0-9a-f]{64})(?![0-9a-f])")
_AT_ONCE = 1000


@dataclass(frozen=True)
class Anchor:
    """The digest of a segment; `segment` is None if only the digest was kept."""

    digest: str
    segment: int | None = None

    def __str__(self) -> str:
        return self.digest if self.segment is None else f"{self.segment}:{self.digest}"


@dataclass(frozen=True)
class Mismatch:
    """An anchor that is not in the chain: `anchor_missing` or `anchor_differs`."""

    code: str
    message: str
    segment: int | None


def newest() -> Anchor | None:
    """Return the anchor of the last segment; None if there is no segment."""
    row = AuditSegment.objects.order_by("-id").values_list("digest", "id").first()
    return Anchor(*row) if row else None


def parse(text: str, field: str = "--anchor") -> Anchor:
    """Parse `SEGMENT:DIGEST`, or a digest alone. Raises InvalidInput `anchor`."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None:
        message = "write an anchor as SEGMENT:DIGEST, where the digest has 64 hexadecimal digits"
        raise errors.InvalidInput.for_field(field, "anchor", message, text[:100])
    segment = match["segment"]
    return Anchor(match["digest"], int(segment) if segment else None)


def read(lines: Iterable[str], field: str = "--anchors") -> list[Anchor]:
    """Return the distinct anchors in a file, such as a log. Raises InvalidInput `anchor` if it has none."""
    texts = {text for line in lines for text in _IN_TEXT.findall(line.lower())}
    if not texts:
        message = "the file has no anchor SEGMENT:DIGEST"
        raise errors.InvalidInput.for_field(field, "anchor", message)
    return [parse(text, field) for text in sorted(texts)]


def compare(anchors: list[Anchor]) -> Iterator[Mismatch]:
    """Yield a mismatch for each anchor that is not in the chain of the database."""
    head = newest()
    for start in range(0, len(anchors), _AT_ONCE):
        part = anchors[start : start + _AT_ONCE]
        numbers = [anchor.segment for anchor in part if anchor.segment is not None]
        digests = dict(AuditSegment.objects.filter(pk__in=numbers).values_list("pk", "digest"))
        for anchor in part:
            if anchor.segment is None:
                yield from _by_digest(anchor)
            elif anchor.segment not in digests:
                end = f"ends at segment {head.segment}" if head else "is empty"
                message = (
                    f"Segment {anchor.segment} of anchor {anchor} is missing; the chain {end}."
                )
                yield Mismatch("anchor_missing", message, anchor.segment)
            elif digests[anchor.segment] != anchor.digest:
                actual = digests[anchor.segment]
                message = f"Segment {anchor.segment} has digest {actual}; its anchor says {anchor.digest}."
                yield Mismatch("anchor_differs", message, anchor.segment)


def _by_digest(anchor: Anchor) -> Iterator[Mismatch]:
    if not AuditSegment.objects.filter(digest=anchor.digest).exists():
        yield Mismatch("anchor_missing", f"No segment has the digest {anchor}.", None)
