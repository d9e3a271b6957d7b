"""checks/: asked for by who may, done by a worker, told to who may see."""

from __future__ import annotations

import pytest

from pools.models import CheckRun
from pools.platform.checks import registry, runs
from tests.edges import api as apis

pytestmark = pytest.mark.django_db


def test_asked_done_and_read() -> None:
    api = apis.Api("administrator")
    answer = api("POST", "checks/", {"only": ["leases"], "repair": True, "seconds": 20})
    assert answer.status_code == 202
    asked = answer.json()
    assert (asked["state"], asked["only"], asked["seconds"]) == ("waiting", ["leases"], 20)
    assert asked["actor"] == api.user.get_username()
    runs.execute(asked["id"])
    done = api("GET", f"checks/{asked['id']}/").json()
    assert (done["state"], done["complete"], done["violations"]) == ("ended", True, 0)
    (check,) = done["checks"]
    assert (check["code"], check["state"]) == ("leases", "clean")
    assert check["proves"] == registry.get("leases").proves
    (listed,) = api("GET", "checks/?violated=false").json()["results"]
    assert listed == {name: value for name, value in done.items() if name != "checks"}
    assert api("GET", "checks/?violated=true").json()["results"] == []


def test_the_same_key_asks_once() -> None:
    api = apis.Api("operator")
    first = api("POST", "checks/", {"repair": False}, Idempotency_Key="k").json()
    assert api("POST", "checks/", {"repair": False}, Idempotency_Key="k").json() == first
    assert CheckRun.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"only": ["nonsense"]}, "unknown_check"),
        ({"only": "leases"}, "wrong_type"),
        ({"only": [1]}, "wrong_type"),
        ({"seconds": 0}, "out_of_range"),
        ({"seconds": runs.LONGEST + 1}, "out_of_range"),
        ({"repair": "yes"}, "wrong_type"),
        ({"force": True}, "unknown_field"),
        ({}, "object_expected"),
    ],
)
def test_bad_input(body: object, code: str) -> None:
    apis.refused(apis.Api("administrator")("POST", "checks/", body), 400, code)
    assert not CheckRun.objects.exists()


def test_who_may_what() -> None:
    viewer, operator = apis.Api("viewer"), apis.Api("operator")
    apis.refused(viewer("POST", "checks/", {"repair": False}), 403, "permission_denied")
    apis.refused(operator("POST", "checks/", {"repair": True}), 403, "permission_denied")
    assert operator("POST", "checks/", {"repair": False}).status_code == 202
    assert viewer("GET", "checks/").status_code == 200
    apis.refused(viewer("GET", "checks/999/"), 404, "not_found")
    apis.refused(apis.Api("vm-owner")("GET", "checks/"), 403, "permission_denied")
