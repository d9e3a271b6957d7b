"""The guide of a register import in a browser: two files, their draft, a correction, the commit, the undo."""

from typing import Any

import pytest

from pools.models import Block, Cluster, Container, Pool
from pools.register.demo import demo
from tests.e2e.conftest import Visit
from tests.register_imports import sources

pytestmark = pytest.mark.django_db(transaction=True)
PREFIXES = [
    ("10.112.0.0/15", "container", "", "", "", "North America"),
    ("10.112.129.0/24", "active", "", "Branch 1", "Access", "Data"),
    (
        "10.40.0.0/24",
        "active",
        "",
        "Branch 1",
        "Access",
        "lies in the blue pool, which reserves it",
    ),
]
ADDRESSES = [
    ("10.112.129.5/24", "active", "", "Branch 1", "pc5.example.org", ""),
    ("10.112.129.300/24", "active", "", "Branch 1", "pc6.example.org", ""),
]


def _file(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "text/csv", "buffer": content}


def _draft(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/pools/import/add/")
    page.set_input_files(
        "#id_file",
        [
            _file("prefixes.csv", sources.table(sources.IMPORT_PREFIX, PREFIXES)),
            _file("addresses.csv", sources.table(sources.IMPORT_ADDRESS, ADDRESSES)),
        ],
    )
    whole = f"{demo.FRANKFURT}: the whole cluster"
    page.select_option("select[name=where]", label=whole)
    page.get_by_role("button", name="Upload and preview").click()
    page.get_by_role("heading", name="Ready to import: 4 of 6 rows").wait_for()


def test_from_files_to_a_commit_and_its_undo(visit: Visit) -> None:
    page = visit.page
    _draft(visit)
    page.get_by_role("cell", name="addresses.csv", exact=True).wait_for()
    # Above its rows, and above the range that follows from one of them.
    assert page.get_by_role("cell", name="prefixes.csv", exact=True).count() == 2

    page.get_by_role("link", name="invalid 1").click()
    page.locator("summary", has_text="Correct").click()
    page.get_by_label("Address", exact=True).fill("10.112.129.6/24")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Row 3 is new now.").wait_for()

    page.get_by_role("button", name="Import 5 valid rows, leave 1 out").click()
    page.get_by_text("Committed: 5 new").wait_for()
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    pool = Pool.objects.get(cluster=cluster, name="10.112.129.0-24")
    held = Block.objects.filter(pool=pool, state="held").order_by("cidr")
    assert [block.holder_id for block in held] == ["pc5.example.org", "pc6.example.org"]

    page.get_by_role("link", name="Undo the import").click()
    page.get_by_text("5 records that the import created").wait_for()
    page.get_by_role("button", name="Undo the import").click()
    page.get_by_text("Import undone, previous values restored.").wait_for()
    assert not Pool.objects.filter(pk=pool.pk).exists()
    assert not Container.objects.filter(cidr="10.112.0.0/15").exists()
