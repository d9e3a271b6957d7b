"""Names as Forklift makes them: the cases of its own tests, and those that differ from ours."""

from __future__ import annotations

import pytest

from claims.core.vm_import import vm_interface

CASES = {
    "web-01": "web-01",
    "Web 01": "web-01",
    "WEB_01+x*y/z\\w": "web-01-x-y-z-w",
    "web.prod.example": "web.prod.example",
    "..web..": "web",
    "a..b": "a.b",
    "a.-.b": "a.b",
    "a.%%.b": "a.b",
    "web%2f01": "web2f01",
    "a---b__c": "a-b-c",
    "-.-": "",
    "": "",
    "日本": "",
    "\u0130x": "ix",
    "x" * 70: "x" * 63,
    "x" * 62 + "-y": "x" * 62,
    f"{'a' * 40}.{'b' * 40}": f"{'a' * 40}.{'b' * 22}",
    f"{'a' * 62}.b": "a" * 62,
}


@pytest.mark.parametrize("name", CASES)
def test_a_name_becomes_what_forklift_makes_of_it(name: str) -> None:
    assert vm_interface.sanitize(name) == CASES[name]
