"""A file of fifty thousand VMs, thirty columns wide: drafted beside the bare reading of it, written, undone."""

import csv
import io
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import openpyxl
from django.db import connection
from psycopg import pq

from benchmarks import registers
from claims.imports import drafts, formats
from claims.models import Entry, Network, VMImport
from claims.networks import pools
from pools.models.imports import ImportStatus as Status
from pools.platform import events
from pools.platform.imports import worker

ROWS = 50_000
_FIRST = int(ip_address("10.64.1.0"))
_XLSX_TIMES, _CSV_TIMES = 3.0, 20.0  # of the bare reading, at most
_QUERIES = 5.0  # for a thousand rows written, at most
_HEADER = (
    "VM", "Powerstate", "Template", "SRM Placeholder", "NIC label", "Adapter", "Network", "Switch",
    "Connected", "Starts Connected", "Mac Address", "Type", "IPv4 Address", "IPv6 Address",
    "Direct Path IO", "Internal Sort Column", "Annotation", "Backup status",
    "ClusterInvariantVMMId", "Last backup", "Datacenter", "Cluster", "Host", "Folder",
    "OS according to the configuration file", "OS according to the VMware Tools", "VM ID", "VM UUID",
    "VI SDK Server", "VI SDK UUID",
)  # fmt: skip


def measure() -> Iterator[dict[str, Any]]:
    """Drafts of both kinds of file; a commit, its statements; what came again; the undoing."""
    network = _network()
    text, book = _csv(), _xlsx()
    bare = _seconds(lambda: sum(1 for _ in csv.reader(io.StringIO(text.decode()))))
    drafted, took = _drafted(network, text, "vms.csv")
    yield _times("import_csv_drafted", took, bare, _CSV_TIMES)
    drafts.IMPORTS.cancel(drafted.pk, author=registers.BY)
    bare = _seconds(lambda: _read_bare(book))
    drafted, took = _drafted(network, book, "vms.xlsx")
    yield _times("import_xlsx_drafted", took, bare, _XLSX_TIMES)
    yield _written(drafted)
    again, took = _drafted(network, text, "vms.csv")
    if again.counts["unchanged"] != ROWS:
        raise RuntimeError(f"the same file again: {again.counts}")
    yield {"name": "import_again_drafted", "seconds": round(took, 2)}
    undone = _seconds(lambda: _undo(drafted))
    yield {"name": "import_undone", "seconds": round(undone, 2), "left": Entry.objects.count()}
    yield _memory(book)


def _network() -> Network:
    cluster = registers.cluster()
    with events.recorded_by(registers.BY):
        network = Network.objects.create(
            cluster=cluster, name="wide", kind="cudn", topology="layer2", subnets=["10.64.0.0/14"]
        )
        pools.sync_pool(network, author=registers.BY)
    return network


def _lines() -> Iterator[tuple[str, ...]]:
    yield _HEADER
    for number in range(ROWS):
        mac = f"00:50:56:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        yield (
            f"vm-{number:05}", "poweredOn", "False", "False", "Network adapter 1", "Vmxnet3",
            "vlan100-prod", "dvs-prod", "True", "True", mac, "assigned",
            str(ip_address(_FIRST + number)), "", "False", f"vm-{number:05} Network adapter 1",
            "platform team", "ok", "4203c5a1", "2026-11-20", "DC1", "Prod01",
            f"esx{number % 40:02}.corp.example", "prod", "Red Hat Enterprise Linux 9",
            "Red Hat Enterprise Linux 9", f"vm-{number}",
            f"4203c5a1-8d4e-4b1e-9f7a-{number:012x}", "vcenter01.corp.example",
            "8c1f5d3e-1f0a-4d4b-a5cf-0123456789ab",
        )  # fmt: skip


def _csv() -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(_lines())
    return stream.getvalue().encode()


def _xlsx() -> bytes:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("vNetwork")
    for line in _lines():
        sheet.append(line)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _read_bare(content: bytes) -> int:
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    return sum(1 for _ in book["vNetwork"].iter_rows(values_only=True))


def _drafted(network: Network, content: bytes, name: str) -> tuple[VMImport, float]:
    began = time.perf_counter()
    new = VMImport(cluster=network.cluster, network=network, namespace="bench")
    made = drafts.IMPORTS.create([(name, content)], new, author=registers.BY)
    worker.process_import(made.pk)
    took = time.perf_counter() - began
    found = drafts.IMPORTS.get(made.pk)
    if found.status != Status.DRAFTED or sum(found.counts.values()) != ROWS:
        raise RuntimeError(f"{found.status} {found.counts} {found.error}")
    return found, took


def _written(of: VMImport) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        began = time.perf_counter()
        drafts.IMPORTS.commit(of.pk, author=registers.BY)
        round_trips = _round_trips(trace, lambda: worker.process_import(of.pk))
        took = time.perf_counter() - began
    if Entry.objects.count() != ROWS:
        raise RuntimeError(drafts.IMPORTS.get(of.pk).error)
    each = round_trips / (ROWS / 1000)
    return {
        "name": "import_written", "seconds": round(took, 2), "queries_per_1000_rows": round(each, 2),
        "goal_at_most": _QUERIES, "met": each <= _QUERIES,
    }  # fmt: skip


def _undo(of: VMImport) -> None:
    drafts.IMPORTS.undo(of.pk, author=registers.BY)
    worker.process_import(of.pk)


def _round_trips(trace: Path, work: Callable[[], object]) -> int:
    """What was asked of the database, on the wire: much goes past Django's cursor."""
    connection.ensure_connection()
    wire = connection.connection.pgconn
    with trace.open("w") as file:
        wire.trace(file.fileno())
        wire.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            work()
        finally:
            wire.untrace()
    said = (line.split("\t") for line in trace.open(errors="replace"))
    return sum(len(line) > 2 and line[0] == "F" and line[2] in {"Sync", "Query"} for line in said)


def _memory(book: bytes) -> dict[str, Any]:
    """What a draft holds beside the file while it is read; that of the process at its most."""
    lines = formats.open_file("vms.xlsx", book).rows()
    tracemalloc.start()
    for _ in lines:
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "name": "import_xlsx_memory", "reading_mib": round(most / 2**20, 1),
        "process_mib": round(process), "goal_at_most_mib": 100, "met": most < 100 * 2**20,
    }  # fmt: skip


def _times(name: str, took: float, bare: float, most: float) -> dict[str, Any]:
    return {
        "name": name, "seconds": round(took, 2), "bare_seconds": round(bare, 2),
        "ratio": round(took / bare, 2), "goal_at_most": most, "met": took <= most * bare,
    }  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
