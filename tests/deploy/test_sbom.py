import json
import re
import subprocess
import sys

import pytest

import ipam_site
from tests.deploy import shipped


@pytest.mark.parametrize("more", [(), ("requirements-ldap.lock",)])
def test_the_bill_of_materials_lists_what_is_locked(more: tuple[str, ...]) -> None:
    folder = shipped.DEPLOY / "container"
    texts = {
        subprocess.run(
            [sys.executable, folder / "sbom.py", *more], capture_output=True, check=True
        ).stdout
        for _ in range(2)
    }
    (text,) = texts  # the same each time
    bill = json.loads(text)
    lock = "".join((folder / name).read_text() for name in ("requirements.lock", *more))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == ipam_site.__version__
    pins = re.findall(r"^([\w.-]+)==([^\s\\]+)", lock, re.MULTILINE)
    assert [(component["name"], component["version"]) for component in bill["components"]] == pins
    hashes = [
        item
        for component in bill["components"]
        for item in component["externalReferences"][0]["hashes"]
    ]
    assert len(hashes) == lock.count("--hash=sha256:")
    references = {component["bom-ref"] for component in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == references
    assert len(references) == len(pins)
