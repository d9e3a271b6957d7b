"""RFC 6902 patches that set annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Patch = list[dict[str, Any]]


def set_annotation(manifest: object, metadata_path: Sequence[str], name: str, value: str) -> Patch:
    """A patch that sets an annotation of the metadata at the path `metadata_path` of the manifest.

    Objects on the way that are absent (or null) are added first. Nothing that is there is replaced but
    the annotation itself.
    """
    patch: Patch = []
    path = ""
    here = manifest
    for key in (*metadata_path, "annotations"):
        path += f"/{_escaped(key)}"
        here = here.get(key) if isinstance(here, dict) else None
        if here is None:
            patch.append({"op": "add", "path": path, "value": {}})
            here = {}
    patch.append({"op": "add", "path": f"{path}/{_escaped(name)}", "value": value})
    return patch


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
