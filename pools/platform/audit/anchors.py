"""Anchors: digests of the audit chain that are kept outside of the database (docs/reference/history-and-audit.md).

An anchor is `SEGMENT:DIGEST`. Whoever owns the database can cut the chain's tail off or write the chain
anew, and it verifies by itself; a kept anchor shows that it is another chain.
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
    """The digest of a segment; `segment` is None where only the digest was kept."""

    digest: str
    segment: int | None = None

    def __str__(self) -> str:
        return self.digest if self.segment is None else f"{self.segment}:{self.digest}"


@dataclass(frozen=True)
class Mismatch:
    """An anchor that the chain does not have: `anchor_missing` or `anchor_differs`."""

    code: str
    message: str
    segment: int | None


def newest() -> Anchor | None:
    """The anchor of the last segment; None before the first."""
    row = AuditSegment.objects.order_by("-id").values_list("digest", "id").first()
    return Anchor(*row) if row else None


def parse(text: str, at: str = "--anchor") -> Anchor:
    """`SEGMENT:DIGEST`, or a digest alone. Raises InvalidInput `anchor`."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None:
        message = "write an anchor as SEGMENT:DIGEST, where the digest has 64 hexadecimal digits"
        raise errors.InvalidInput.for_field(at, "anchor", message, text[:100])
    segment = match["segment"]
    return Anchor(match["digest"], int(segment) if segment else None)


def read(lines: Iterable[str], at: str = "--anchors") -> list[Anchor]:
    """Every anchor of a file, such as a log, each once. Raises InvalidInput `anchor` without any."""
    texts = {text for line in lines for text in _IN_TEXT.findall(line.lower())}
    if not texts:
        message = "the file has no anchor SEGMENT:DIGEST"
        raise errors.InvalidInput.for_field(at, "anchor", message)
    return [parse(text, at) for text in sorted(texts)]


def compare(anchors: list[Anchor]) -> Iterator[Mismatch]:
    """The anchors that the chain of the database does not have."""
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
