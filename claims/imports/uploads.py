"""Uploads of imports; a large one is stored for a worker."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any, BinaryIO

from claims.imports.files import formats
from claims.models import ImportFile, VMImport
from pools.platform import database


@dataclass(frozen=True)
class Upload:
    """An upload; its `kind` is `file` (a stream), `text` (pasted) or `rows` (a JSON list)."""

    kind: str
    content: Any
    name: str = ""

    def open(self, *, already_counted: bool = False) -> formats.FileReading:
        """Open the upload for reading. Raises InvalidInput.

        `already_counted` skips counting the rows, which the first opening has done.
        """
        if self.kind == "rows":
            return formats.from_rows(self.content)
        if self.kind == "text":
            return formats.from_text(self.content)
        stream: BinaryIO = self.content
        stream.seek(0)
        return formats.open_file(self.name, stream, already_counted=already_counted)

    def to_bytes(self) -> bytes:
        """Return the content as bytes, as it is stored."""
        if self.kind == "rows":
            return json.dumps(self.content).encode()
        if self.kind == "text":
            return str(self.content).encode()
        self.content.seek(0)
        content: bytes = self.content.read()
        return content


def store(upload: Upload, vm_import: VMImport) -> None:
    """Store the upload for a worker; it is deleted when its rows are stored."""
    database.rows(_KEEP, [vm_import.pk, upload.kind, upload.to_bytes()], prepare=False)


# Bytes are sent in binary: as text they would take twice the size.
_KEEP = """
    INSERT INTO claims_importfile (vm_import_id, kind, content) VALUES (%s, %s, %b) RETURNING id
"""


def load(vm_import: VMImport) -> Upload:
    """Return the stored upload of an import."""
    file, name = ImportFile.objects.get(vm_import=vm_import), vm_import.file_name
    content = bytes(file.content)
    if file.kind == "rows":
        return Upload("rows", json.loads(content))
    if file.kind == "text":
        return Upload("text", content.decode())
    return Upload("file", io.BytesIO(content), name)
