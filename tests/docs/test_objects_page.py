"""docs/reference/objects.md: the request of each section answers with the example below it."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from claims.operations import demo as vm_demo
from pools.register.demo import demo
from tests.docs import pages
from tests.docs.examples import differences, read_json_values
from tests.e2e import fleet

PAGE = (pages.ROOT / "docs" / "reference" / "objects.md").read_text()
_EXAMPLE = re.compile(r"^`GET ([^`]+)`\n\n```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def first_object(body: dict[str, Any]) -> dict[str, Any]:
    """The object of an answer, or the first one of a list."""
    return dict(body["results"][0] if "results" in body else body)


def test_every_section_has_an_example() -> None:
    assert len(_EXAMPLE.findall(PAGE)) == PAGE.count("\n## ")


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_every_example_is_what_the_product_answers(client: Client) -> None:
    users = get_user_model().objects
    users.create_user(vm_demo.OWNER, password="password")
    client.force_login(users.create_superuser("admin", password="password"))
    demo.load()
    fleet.observed()
    fleet.operated()
    wrong, last_id = [], 0
    for path, shown in _EXAMPLE.findall(PAGE):
        response = client.get("/api/v1/" + path.replace("{id}", str(last_id)))
        assert response.status_code == 200, (path, response.content)
        answer = first_object(response.json())
        last_id = answer.get("id", last_id)
        (example,) = read_json_values(shown)
        wrong += [f"GET {path} {difference}" for difference in differences(example, answer)]
    assert wrong == []
