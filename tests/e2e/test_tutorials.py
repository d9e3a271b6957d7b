"""The tutorials of docs/tutorials/ for people, followed step by step as the pages say."""

import pytest
from playwright.sync_api import Error

from tests.docs import pages
from tests.e2e import tutorial
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
FOLDER = pages.ROOT / "docs" / "tutorials"


@pytest.mark.parametrize("name", ["administration", "vm-import"])
def test_a_reader_reaches_the_end(visit: Visit, name: str) -> None:
    visit.open("/admin/")
    reader = tutorial.Reader(visit.page, FOLDER / f"{name}.md")
    assert [step.number for step in reader.steps] == list(range(1, len(reader.steps) + 1))
    assert len(reader.steps) > 10
    for step in reader.steps:
        try:
            reader.follow(step)
        except (AssertionError, Error) as error:
            pytest.fail(f"{name}.md, step {step.number}: {step.text}\n{error}\n{visit.page.url}")
