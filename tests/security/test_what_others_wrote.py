"""Rules `markup-is-escaped`, `exports-hold-no-formula` and `input-is-never-sql`."""

import csv
import io
from urllib.parse import quote

import pytest

from tests.security.target import Target, Visitor

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("https://evil.example")')


@pytest.fixture(scope="module")
def reader(target: Target) -> Visitor:
    visitor = Visitor(target)
    visitor.login("administrator")
    return visitor


@pytest.mark.exhaustive
def test_no_page_runs_what_somebody_wrote(target: Target, reader: Visitor) -> None:
    created = target.rest("POST", "clusters/", {"name": "written", "description": SCRIPT})
    assert created.status == 201, created.text
    part = {"mask_size": 32, "cidrs": ["10.88.0.0/29"]}
    pool = {
        "cluster": "written",
        "name": "w",
        "category": "vm",
        "ipv4": part,
        "description": SCRIPT,
    }
    pool_id = target.rest("POST", "pools/", pool).json()["id"]
    holder = {"holder": {"kind": "vm", "id": "<script>alert(1)</script>"}}
    target.rest("POST", f"pools/{pool_id}/allocations/", holder)
    paths = [
        "", "pools/cluster/", "pools/pool/", f"pools/pool/{pool_id}/change/", "pools/event/",
        f"pools/cluster/{created.json()['id']}/change/", "pools/block/", "history/?q=10.88.0.0",
        f"find/?q={quote(SCRIPT)}", f"pools/pool/?q={quote(SCRIPT)}",
    ]  # fmt: skip
    for path in paths:
        answer = reader.ask("GET", f"/admin/{path}")
        assert answer.status == 200, path
        assert "<script>alert" not in answer.text, path
        assert "<img src=x" not in answer.text, path
    answer = target.rest("GET", f"pools/{pool_id}/")
    assert answer.headers["Content-Type"] == "application/json"


def test_no_spreadsheet_computes_what_somebody_wrote(target: Target, reader: Visitor) -> None:
    for number, formula in enumerate(FORMULAS):
        body = {"name": f"formula-{number}", "description": formula}
        assert target.rest("POST", "clusters/", body).status == 201
    text = reader.ask("GET", "/admin/pools/cluster/export/").text
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert [cell for cell in cells if cell.startswith("'=")]
    for formula in FORMULAS:
        assert formula not in cells
        assert f"'{formula}" in cells


INJECTIONS = ("1' OR '1'='1", "1;DROP TABLE pools_pool", "id);SELECT pg_sleep(60)--", "cluster__name", "-password")  # fmt: skip


def test_no_filter_or_order_is_sql(target: Target, reader: Visitor) -> None:
    for text in INJECTIONS:
        value = quote(text)
        for path in (
            f"pools/?ordering={value}",
            f"blocks/?pool={value}",
            f"events/?fields={value}",
        ):
            answer = target.rest("GET", path)
            assert answer.status == 400, (path, answer.status)
        for path in ("blocks/?holder_id={}", "environments/?org={}", "networks/?name={}"):
            answer = target.rest("GET", path.format(value))
            assert answer.status in {200, 400}, path
            assert answer.status == 400 or answer.json()["results"] == [], path
        for path in ("pools/pool/?o={}", "pools/block/?q={}", "auth/user/?password__startswith={}", "find/?q={}"):  # fmt: skip
            answer = reader.ask("GET", f"/admin/{path.format(value)}")
            assert answer.status in {200, 302, 400}, (path, answer.status)
    assert target.rest("GET", "pools/").status == 200
