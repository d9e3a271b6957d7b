"""What OpenAPI says of imports of VMs."""

from __future__ import annotations

from typing import Any

from claims.imports import vm_status
from claims.models.imports import ImportTarget, RowStatus, Status
from pools.platform.rest import openapi
from pools.platform.rest.openapi import FLAG, TEXT, TIME, WHOLE, listed, nullable, shape

_STATUS = {"type": "string", "enum": list(Status.values)}
_TARGET = {"type": "string", "enum": list(ImportTarget.values)}
_ROW_STATUS = {"type": "string", "enum": list(RowStatus.values)}
_VM_STATUS = {"type": "string", "enum": list(vm_status.STATUSES), "nullable": True}
_REASONS = listed(shape("code message", code=TEXT, message=TEXT))
_COUNTS = shape(
    "new changed unchanged conflict refused",
    new=WHOLE, changed=WHOLE, unchanged=WHOLE, conflict=WHOLE, refused=WHOLE, skipped=WHOLE,
)  # fmt: skip
_MAPPING = {
    "type": "object",
    "additionalProperties": shape(network=nullable(WHOLE), namespace=TEXT),
    "example": {"vlan100-prod": {"network": 7, "namespace": "shop"}},
}
_MAPPING_IN = _MAPPING | {
    "additionalProperties": {"oneOf": [WHOLE, _MAPPING["additionalProperties"]]}
}
_PROGRESS = shape(
    "done total percent", done=WHOLE, total=nullable(WHOLE), percent=nullable(WHOLE),
    remaining_seconds=nullable(WHOLE),
)  # fmt: skip
IMPORT = shape(
    "id format status counts target cluster",
    id=WHOLE, format=TEXT, status=_STATUS, counts=_COUNTS, target=_TARGET, cluster=TEXT,
    network=nullable(WHOLE), namespace=TEXT, mapping=_MAPPING, file=TEXT, rows=nullable(WHOLE),
    progress=_PROGRESS, left_out={"type": "object", "additionalProperties": WHOLE}, notes=_REASONS,
    error=nullable(shape("code message", code=TEXT, message=TEXT)), skip_bad=FLAG, created_by=TEXT,
    created_at=TIME, drafted_at=TIME, committed_at=TIME, undone_at=TIME,
)  # fmt: skip
_ONE = IMPORT | {
    "properties": {
        **IMPORT["properties"],
        "port_groups": listed(
            shape("name rows", name=TEXT, rows=WHOLE, network=nullable(WHOLE), namespace=TEXT)
        ),
        "vm_status_counts": nullable(shape(**dict.fromkeys(vm_status.STATUSES, WHOLE))),
    }
}
ROW = shape(
    "number row vm mac ips status reasons",
    number=WHOLE, row=WHOLE, sheet=TEXT, vm=TEXT, source_vm=TEXT, mac=TEXT, ips=listed(TEXT),
    namespace=TEXT, port_group=TEXT, network=nullable(WHOLE), note=TEXT, status=_ROW_STATUS,
    reasons=_REASONS, before=nullable({"type": "object"}), corrected=FLAG, entry=nullable(WHOLE),
    claim=nullable(WHOLE), vm_status=_VM_STATUS,
)  # fmt: skip
IMPORT_FIELDS = tuple(IMPORT["properties"])
ROW_FIELDS = tuple(ROW["properties"])
_WHERE: dict[str, Any] = {
    "network": WHOLE, "mapping": _MAPPING_IN, "cluster": TEXT, "namespace": TEXT, "target": _TARGET,
    "commit": FLAG, "skip_bad": FLAG,
}  # fmt: skip
_ROW_IN = shape(
    "vm mac ips", vm=TEXT, mac=TEXT, ips=listed(TEXT), network=TEXT, namespace=TEXT, note=TEXT
)

LIST = openapi.says(
    "Imports of VMs: all for those who see all namespaces, for others their own",
    {200: openapi.page(IMPORT)},
    parameters=openapi.query(
        status="", target="", cluster="name or id", network="id", **openapi.PAGED
    ),
)
_FILE = {"type": "string", "format": "binary"}
CREATE = openapi.says(
    "Import VMs from a file, a pasted list or rows: a draft, unless `commit`",
    {201: IMPORT},
    fails=openapi.WRITES,
    parameters=[openapi.IDEMPOTENCY_KEY],
    request={
        "multipart/form-data": shape("file", file=_FILE, **_WHERE),
        "application/json": shape(rows=listed(_ROW_IN), text=TEXT, **_WHERE) | openapi.SOMETHING,
    },
)
ONE = openapi.says(
    "One import, with its port groups and where its VMs stand", {200: _ONE}, fails="404"
)
CHANGE = openapi.says(
    "Map a draft's port groups otherwise; all its rows are read again",
    {200: _ONE},
    fails="404 409 411 413 415",
    **openapi.body(
        shape(network=nullable(WHOLE), namespace=TEXT, mapping=_MAPPING_IN) | openapi.SOMETHING
    ),
)
ROWS = openapi.says(
    "The rows of an import",
    {200: openapi.page(ROW)},
    fails="404",
    parameters=openapi.query(
        status="", namespace="", port_group="", q="a part of a VM, MAC or address", **openapi.PAGED
    ),
)
ROW_ONE = openapi.says("One row of an import", {200: ROW}, fails="404")
ROW_CHANGE = openapi.says(
    "Correct a row of a draft, leave it out, or give it the next free address",
    {200: ROW},
    fails="404 409 411 413 415",
    **openapi.body(
        shape(
            vm=TEXT, mac=TEXT, ips=listed(TEXT), namespace=TEXT, port_group=TEXT, note=TEXT,
            skip=FLAG, free_address=FLAG,
        )
        | openapi.SOMETHING
    ),
)  # fmt: skip
COMMIT = openapi.writes(
    "Write a draft; a large one is written by a worker", {200: IMPORT, 202: IMPORT},
    shape(skip_bad=FLAG), fails="404",
)  # fmt: skip
CHECK = openapi.says(
    "Judge a draft by what the register says now", {200: IMPORT}, fails="404 409", request=None
)
MISSING_ADDRESSES = openapi.says(
    "Give each row that lacks a family of its network the next free address of it",
    {200: IMPORT},
    fails="404 409",
    request=None,
)
UNDO = openapi.says(
    "Take back what an import wrote, as long as nothing uses it",
    {200: IMPORT, 202: IMPORT},
    fails="404 409",
    request=None,
)
CANCEL = openapi.says(
    "Throw a draft away, or end an import before it is written",
    {200: IMPORT},
    fails="404 409",
    request=None,
)
_BINARY = {"type": "string", "format": "binary"}


def download(summary: str, media_type: str, *, fails: str = "") -> dict[str, Any]:
    schema = openapi.says(summary, {200: _BINARY}, fails=fails)
    responses = schema["responses"]
    responses[200, media_type] = responses.pop((200, "application/json"))
    return schema


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TEMPLATE_CSV = download("CSV template of VMs to fill in", "text/csv")
TEMPLATE_XLSX = download("XLSX template of VMs to fill in", XLSX)
MANIFEST = download("What an import wrote, as YAML", "application/yaml", fails="404")
