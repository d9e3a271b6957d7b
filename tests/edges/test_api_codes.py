"""Every code that a refusal may carry is in docs/api.md."""

import re

from ipam_site import data_folder

_CODES = re.compile(
    r'InvalidInput\.of\(\s*[^,]+,\s*"([a-z0-9_]+)"|\n    code = "([a-z0-9_]+)"'
    r'|report\.add\(\s*\w+(?:\.\w+\([^)]*\))?,\s*"([a-z0-9_]+)"'
)
_INTERNAL = {"ipam_error"}  # the base of all refusals, never raised itself


def test_all_codes_are_documented() -> None:
    project = data_folder.PROJECT
    text = "".join(path.read_text() for path in sorted((project / "pools").rglob("*.py")))
    used = {code for item in _CODES.findall(text) for code in item if code} - _INTERNAL
    matches = set(re.findall(r"`([a-z0-9_]+)`", (project / "docs" / "api.md").read_text()))
    assert len(used) > 40
    assert used - matches == set()
