"""Tokens: they are kept as digests, and end."""

import re

from tests.security.target import Target, Visitor


def test_a_stolen_database_opens_nothing(target: Target) -> None:
    rows = target.dump()
    assert "token_key" in rows
    for person, token in target.tokens.items():
        assert token not in rows, person
        assert token[16:] not in rows, person  # without the part that it is looked up by


def test_what_a_stolen_row_holds_is_no_token(target: Target) -> None:
    digest = next(row for row in target.dump().splitlines() if '"token_key"' in row)
    for value in digest.replace('"', " ").replace(",", " ").split():
        assert target.rest("GET", "pools/", token=value).status == 401, value


def test_a_token_that_ended_or_was_revoked_opens_nothing(target: Target) -> None:
    assert target.rest("GET", "networks/", token="expired").status == 401
    visitor = Visitor(target)
    visitor.login("vera")
    page = visitor.ask("GET", "/admin/knox/authtoken/create/").text
    chosen = re.search(r'<option value="(\d+)" selected', page)
    assert chosen, page
    created = visitor.post("/admin/knox/authtoken/create/", {"user": chosen[1], "days": "1"}).text
    token = re.search(r"cad_\w+", created)
    assert token
    assert target.rest("GET", "networks/", token=token[0]).status == 200
    again = visitor.ask("GET", "/admin/knox/authtoken/").text
    assert token[0] not in again
    newest = re.findall(r'name="_selected_action" value="(\w+)"', again)[0]
    answer = {"action": "revoke", "_selected_action": newest, "_confirmed": "1"}
    visitor.post("/admin/knox/authtoken/", answer)
    assert target.rest("GET", "networks/", token=token[0]).status == 401
    assert target.rest("GET", "networks/", token="vera").status == 200
