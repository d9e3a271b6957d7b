"""What was sent for an import, kept for a worker where it is large."""

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
    """What was sent: `file` (a stream), `text` that was pasted, or `rows` of a JSON list."""

    kind: str
    content: Any
    name: str = ""

    def open(self, *, already_counted: bool = False) -> formats.FileReading:
        """Raises InvalidInput. `counted`: it was opened before, when it came."""
        if self.kind == "rows":
            return formats.from_rows(self.content)
        if self.kind == "text":
            return formats.from_text(self.content)
        stream: BinaryIO = self.content
        stream.seek(0)
        return formats.open_file(self.name, stream, already_counted=already_counted)

    def to_bytes(self) -> bytes:
        """The same as bytes, for a worker."""
        if self.kind == "rows":
            return json.dumps(self.content).encode()
        if self.kind == "text":
            return str(self.content).encode()
        self.content.seek(0)
        content: bytes = self.content.read()
        return content


def store(upload: Upload, vm_import: VMImport) -> None:
    """Store what was sent; it goes when it has been read into rows."""
    database.rows(_KEEP, [vm_import.pk, upload.kind, upload.to_bytes()], prepare=False)


# As bytes: twenty megabytes would become forty of text.
_KEEP = """
    INSERT INTO claims_importfile (vm_import_id, kind, content) VALUES (%s, %s, %b) RETURNING id
"""


def load(vm_import: VMImport) -> Upload:
    """What was sent for an import that waits for a worker."""
    file, name = ImportFile.objects.get(vm_import=vm_import), vm_import.file_name
    content = bytes(file.content)
    if file.kind == "rows":
        return Upload("rows", json.loads(content))
    if file.kind == "text":
        return Upload("text", content.decode())
    return Upload("file", io.BytesIO(content), name)
