"""Imports for the tests of this folder, made of plain rows."""

from typing import Any

from claims.imports import drafts, formats
from claims.models import Network, VMImport
from tests.claims.worlds import BY

Row = tuple[Any, ...]


def row(vm: str, mac: str, *ips: str, **more: Any) -> dict[str, Any]:
    return {"vm": vm, "mac": mac, "ips": list(ips)} | more


def mac(number: int) -> str:
    return f"00:50:56:00:{number >> 8:02x}:{number & 255:02x}"


def many(count: int, *, first: int = 1) -> list[dict[str, Any]]:
    """So many VMs of 10.0.0.0/16."""
    numbers = range(first, first + count)
    return [row(f"vm-{n}", mac(n), f"10.0.{1 + n // 250}.{1 + n % 250}") for n in numbers]


def draft(network: Network, /, *rows: dict[str, Any], **options: Any) -> VMImport:
    name, content = formats.rows_upload(rows)
    return of_file(network, content, name, **options)


def of_file(network: Network, content: bytes | str, name: str = "", /, **options: Any) -> VMImport:
    content = content.encode() if isinstance(content, str) else content
    settings = {"network": network, "namespace": "blue"} | options
    new = VMImport(cluster=network.cluster, **settings)
    return drafts.IMPORTS.create([(name, content)], new, author=BY)


def statuses(of: VMImport) -> dict[int, tuple[str, set[str]]]:
    """By number, the status and the codes of the reasons but those about what was added."""
    said = {"prefix_added"}
    return {
        import_row.number: (
            import_row.status,
            {reason["code"] for reason in import_row.reasons} - said,
        )
        for import_row in of.rows.all()
    }


def counts(of: VMImport) -> dict[str, int]:
    return {status: count for status, count in of.counts.items() if count}
