"""The form of the history: a time that cannot be read is an error at its field, and stays."""

import pytest
from django.urls import reverse

from tests import people


@pytest.mark.parametrize(
    ("text", "says"), [("next full moon", "last week"), ("2099-01-01", "future")]
)
def test_an_unreadable_time_is_an_error_at_its_field(text: str, says: str) -> None:
    answer = people.browser().get(reverse("admin:history"), {"at": text, "q": "10.0.0.1"})
    page = answer.content.decode()
    assert f'name="at" value="{text}"' in page
    assert 'aria-invalid="true"' in page
    assert says in page.split('id="id_at_error"')[1].split("</p>")[0]


def test_a_date_alone_and_no_time_are_no_error() -> None:
    for query in ({}, {"at": "2026-05-05", "q": "10.0.0.1"}):
        page = people.browser().get(reverse("admin:history"), query).content.decode()
        assert "aria-invalid" not in page
