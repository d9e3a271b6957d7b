"""RFC 6902 patches that set annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Patch = list[dict[str, Any]]


def set_annotation(manifest: object, metadata_path: Sequence[str], name: str, value: str) -> Patch:
    """Return a patch that sets an annotation of the metadata at `metadata_path` of the manifest.

    The patch first adds objects of the path that are absent or null. It replaces only the annotation.
    """
    patch: Patch = []
    path = ""
    section = manifest
    for key in (*metadata_path, "annotations"):
        path += f"/{_escaped(key)}"
        section = section.get(key) if isinstance(section, dict) else None
        if section is None:
            patch.append({"op": "add", "path": path, "value": {}})
            section = {}
    patch.append({"op": "add", "path": f"{path}/{_escaped(name)}", "value": value})
    return patch


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
