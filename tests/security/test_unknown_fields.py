"""Rule `unknown-fields-are-refused`."""

import pathlib

import pytest

from tests.security.target import Target

PLACES = (
    "pools/", "clusters/", "memberships/", "networks/", "ippools/", "ipamclaims/", "waves/",
    "webhook-targets/", "references/",
)  # fmt: skip
PRODUCT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("path", PLACES)
def test_a_field_of_others_is_refused(target: Target, path: str) -> None:
    for name in ("is_superuser", "password", "_state", "pk"):
        answer = target.rest("POST", path, {name: True})
        assert answer.status == 400, (path, name)
        assert [e["field"] for e in answer.json()["errors"] if e["code"] == "unknown_field"] == [
            name
        ]


def test_nothing_takes_all_fields_of_a_table() -> None:
    for app in ("pools", "claims", "ipam_site"):
        for module in (PRODUCT / app).rglob("*.py"):
            assert 'fields = "__all__"' not in module.read_text(), module
