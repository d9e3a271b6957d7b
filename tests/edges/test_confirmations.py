"""Whatever ends something asks on one page: what it hits, one verb as the button, and *Cancel*."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests import people
from tests.claims.access import answers
from tests.security import everything, requests

# The last part of the address of a page that ends something.
ENDS = {
    "delete", "disconnect", "release", "reclaim", "rotate", "end-cooldown", "reset-second-factor",
}  # fmt: skip
_DANGER = re.compile(r'<button type="submit"[^>]*cad-button-danger[^>]*>([^<]*)</button>')


@pytest.fixture
def world() -> everything.Everything:
    return everything.create()


def _ends(world: everything.Everything) -> Iterator[tuple[str, Any]]:
    """Yield the path of each page that ends something, with its answer."""
    browser = people.browser()
    for address in answers.addresses("admin/"):
        path, _body = requests.request(world, address, "GET")
        if address.names and path.split("?")[0].rstrip("/").split("/")[-1] in ENDS:
            yield path, browser.get(path)


@pytest.mark.exhaustive
def test_each_page_that_ends_something_is_the_same_page(world: everything.Everything) -> None:
    asked = 0
    for path, answer in _ends(world):
        if answer.status_code != 200:
            continue
        asked += 1
        text = answer.content.decode()
        assert "cadastre/confirm.html" in [template.name for template in answer.templates], path
        verbs = _DANGER.findall(text)
        assert len(verbs) <= 1, path
        assert all(len(verb.split()) <= 4 for verb in verbs), (path, verbs)
        assert (">Cancel<" if verbs else ">Back<") in text, path
    assert asked >= 15, "the pages were found"


def test_the_page_of_django_names_counts_and_no_cookie() -> None:
    client, user = people.browser(), people.user()
    theirs = Client()
    theirs.force_login(user)
    url = reverse("admin:auth_user_delete", args=[user.pk])
    answer = client.get(url)
    text = answer.content.decode()
    assert "cadastre/confirm.html" in [template.name for template in answer.templates]
    assert f"Delete {user}?" in text
    assert "Users: 1" in text
    assert theirs.cookies["sessionid"].value not in text
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not type(user).objects.filter(pk=user.pk).exists()
