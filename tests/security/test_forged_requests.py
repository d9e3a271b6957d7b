"""Rule `forged-requests-fail`: another page makes the browser of an administrator send requests."""

import itertools

import pytest

from tests.claims.access import answers
from tests.security.target import Target, Visitor

METHODS = ("POST", "PUT", "PATCH", "DELETE")
KINDS = ("text/plain", "multipart/form-data; boundary=x")


@pytest.mark.exhaustive
def test_no_page_of_the_admin_takes_a_forged_post(target: Target) -> None:
    victim = Visitor(target)
    victim.login("administrator")
    for address in answers.addresses("admin/"):
        path = address.filled(*(1 for _ in address.names))
        answer = victim.ask(
            "POST", path, "a=b", Origin="https://evil.example", Referer="https://evil.example/",
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        # That the autocomplete takes no POST at all is said first.
        assert answer.status in {403, 405}, (path, answer.status)


def test_no_address_of_the_api_takes_a_forged_change(target: Target) -> None:
    """As text or a form, which a page may send without asking; and with a token that is not the session's."""
    victim = Visitor(target)
    victim.login("administrator")
    before = target.rest("GET", "events/?limit=1").json()["results"]
    for address in answers.addresses("api/v1/"):
        path = address.filled(*(1 for _ in address.names))
        for method, kind in itertools.product(METHODS, KINDS):
            answer = victim.ask(
                method, path, "{}", Content_Type=kind, Origin="https://evil.example"
            )
            assert answer.status in {403, 405}, (method, path, kind, answer.status)
    forged = victim.ask(
        "POST", "/api/v1/clusters/", {"name": "forged"}, X_CSRFToken="x" * 64,
        Referer=target.origin + "/",
    )  # fmt: skip
    assert forged.status == 403
    assert target.rest("GET", "events/?limit=1").json()["results"] == before
