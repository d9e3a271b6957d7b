"""`make sbom`: what is in the image, as CycloneDX 1.6 JSON on stdout, from requirements.lock
and the further lock files beside it that are named.

Python packages only: the base image has a list of its own, which its publisher signs.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import uuid
from typing import Any

_HERE = pathlib.Path(__file__).parent
_PROJECT = _HERE.parents[1]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, Any]]:
    """One component for each pinned package, with the digests of its files."""
    found: list[dict[str, Any]] = []
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            name, version = pin.groups()
            purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
            found.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": version,
                    "purl": purl,
                    # A package has a file for each platform: any one of them is what is installed.
                    "externalReferences": [
                        {
                            "type": "distribution",
                            "url": f"https://pypi.org/project/{name}/{version}/",
                            "hashes": [],
                        }
                    ],
                }
            )
        elif digest := _HASH.search(line):
            hashes = found[-1]["externalReferences"][0]["hashes"]
            hashes.append({"alg": "SHA-256", "content": digest[1]})
    return found


def bill(lock: str, version: str) -> dict[str, Any]:
    """The whole document; the same lock and version make the same document."""
    listed = components(lock)
    site = f"pkg:generic/cadastre@{version}"
    serial = uuid.uuid5(uuid.NAMESPACE_URL, site + lock)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": site,
                "name": "cadastre",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": listed,
        "dependencies": [{"ref": site, "dependsOn": [one["bom-ref"] for one in listed]}],
    }


if __name__ == "__main__":
    said = re.search(r'__version__ = "(.+)"', (_PROJECT / "ipam_site/__init__.py").read_text())
    locks = ["requirements.lock", *sys.argv[1:]]
    text = "".join((_HERE / name).read_text() for name in locks)
    document = bill(text, said[1] if said else "0")
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")
