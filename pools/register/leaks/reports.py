"""Read the blocks to reclaim from a stored report, or find them by id, CIDR or address.

Beside it: leaks with their blocks for lists, reports and exports, and the reason of each in words.
"""

import csv
import io
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import ngettext

from pools.core import addresses, errors, spreadsheet_cells
from pools.models import AddressSpace, Block, Cluster, Leak
from pools.platform import documents
from pools.register.leaks import detection
from pools.register.leaks.reclaim import ReclaimTarget

LARGEST = 256 * 1024 * 1024  # bytes: half a million leaks
REQUIRED_COLUMNS = ("block_id", "holder_kind", "holder_id", "holder_uid", "org", "allocated_at")


def read_report(path: str) -> list[ReclaimTarget]:
    """Read a report that `ipam leaks -o json` or `-o csv` wrote; "-" is the standard input.

    A reclaim compares all fields of the targets. Raises InvalidInput `unreadable`, `too_large`,
    `report_columns`, `report_row`, `wrong_type`, `csv_syntax`, and the codes of the JSON parser.
    """
    text = _read_text(path)
    rows = _parse_json(text) if text.lstrip()[:1] in {"[", "{"} else _parse_csv(text)
    return [_parse_row(row, number) for number, row in enumerate(rows, 1)]


def _read_text(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read(LARGEST + 1) if path == "-" else _read_file(path)
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidInput.for_field(
            "FILE", "unreadable", f"{path} cannot be read: {error}"
        ) from None
    if len(raw) > LARGEST:
        raise errors.InvalidInput.for_field(
            "FILE", "too_large", f"the file may have at most {LARGEST} bytes"
        )
    return text


def _read_file(path: str) -> bytes:
    with pathlib.Path(path).open("rb") as stream:
        return stream.read(LARGEST + 1)


def _parse_json(text: str) -> Sequence[Any]:
    entries = documents.load_json_value(text, limit=LARGEST)
    if not isinstance(entries, list):
        raise errors.InvalidInput.for_field("FILE", "wrong_type", "expected a list of leaks")
    return entries


def _parse_csv(text: str) -> Sequence[Any]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    missing = [name for name in REQUIRED_COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        message = f"the report has no column {', '.join(missing)}: write it with -o csv or json"
        raise errors.InvalidInput.for_field("FILE", "report_columns", message)
    try:
        return [
            {name: spreadsheet_cells.unescape(row[name] or "") for name in REQUIRED_COLUMNS}
            for row in reader
        ]
    except csv.Error as error:
        message = f"line {reader.line_num}: {error}"
        raise errors.InvalidInput.for_field("FILE", "csv_syntax", message) from None


def _parse_row(row: Any, number: int) -> ReclaimTarget:
    try:
        values = {
            name: str(row[name] if row[name] is not None else "") for name in REQUIRED_COLUMNS
        }
        allocated_at = datetime.fromisoformat(values["allocated_at"])
        if not isinstance(row, Mapping) or allocated_at.tzinfo is None:
            raise ValueError  # noqa: TRY301  # one error for every fault of a row
        block_id = int(values["block_id"])
        if not 0 < block_id < 1 << 63:
            raise ValueError  # noqa: TRY301
    except (KeyError, TypeError, ValueError):
        message = f"row {number} is not a leak as `ipam leaks` writes it"
        raise errors.InvalidInput.for_field("FILE", "report_row", message) from None
    return ReclaimTarget(
        block_id,
        values["holder_kind"],
        values["holder_id"],
        values["holder_uid"],
        values["org"],
        allocated_at,
    )


def find_targets(block_names: Sequence[str], *, cluster: str | None = None) -> list[ReclaimTarget]:
    """Find blocks by id, CIDR or address, and return them with their present holders.

    Raises NotFound, or InvalidInput `ambiguous` if two address spaces contain the block.
    """
    rows = Block.objects.exclude(holder_id="")
    if cluster:
        number = int(cluster) if cluster.isdecimal() and len(cluster) < 18 else 0
        clusters = Cluster.objects.filter(Q(name=cluster) | Q(pk=number))
        rows = rows.filter(pool__cluster__in=clusters)
    return [_find_target(text, rows) for text in block_names]


def _find_target(block_name: str, rows: QuerySet[Block]) -> ReclaimTarget:
    if block_name.isascii() and block_name.isdigit():
        rows = rows.filter(pk=int(block_name) if len(block_name) < 18 else 0)
    else:
        cidr = str(addresses.parse_block(block_name, field="BLOCK"))
        spaces = list(AddressSpace.objects.values_list("pk", flat=True))
        rows = rows.filter(cidr=cidr, space__in=spaces)  # uses the index of space and CIDR
    matches = list(rows[:2])
    if not matches:
        raise errors.NotFound(f"There is no block {block_name} with a present or former holder.")
    if len(matches) > 1:
        message = f"{block_name} is in several address spaces: give the block's id"
        raise errors.InvalidInput.for_field("BLOCK", "ambiguous", message, block_name)
    block = matches[0]
    return ReclaimTarget(
        block.pk,
        block.holder_kind,
        block.holder_id,
        block.holder_uid,
        block.org,
        block.allocated_at,
    )


CHUNK = 2000


def describe_observation(leak: Leak) -> str:
    """Return a sentence that says which observations missed the holder."""
    holder = f"{leak.holder_kind} {leak.holder_id}"
    count = leak.observations
    if leak.source == detection.TOOLING:
        return ngettext(
            "%(holder)s is missing from the last inventory report.",
            "%(holder)s is missing from the last %(count)d inventory reports.",
            count,
        ) % {"holder": holder, "count": count}
    return ngettext(
        "%(holder)s is missing from the last complete list of %(source)s.",
        "%(holder)s is missing from the last %(count)d complete lists of %(source)s.",
        count,
    ) % {"holder": holder, "source": leak.source, "count": count}


def load_blocks(leaks: Sequence[Leak]) -> list[Leak]:
    """Read the blocks of leaks with one query; leaks whose block is gone are left out."""
    block_rows = Block.objects.filter(pk__in={leak.block_id for leak in leaks})
    blocks = {block.pk: block for block in block_rows.select_related("pool__cluster")}
    loaded = [leak for leak in leaks if leak.block_id in blocks]
    for leak in loaded:
        leak.block = blocks[leak.block_id]
    return loaded


def iterate_leaks(rows: QuerySet[Leak]) -> Iterator[Leak]:
    """Yield all leaks of a queryset with their blocks, read in chunks."""
    leaks = rows.order_by("id").iterator(chunk_size=CHUNK)
    while chunk := list(islice(leaks, CHUNK)):
        yield from load_blocks(chunk)
