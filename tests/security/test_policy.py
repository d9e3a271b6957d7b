"""docs/reference/permissions.md against the product: every address, method, role, and a token of each."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, transaction
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from knox.models import AuthToken

from tests.claims.access import answers
from tests.security import everything, policy, requests
from tests.security.everything import OWNER, STRANGER, Everything

pytestmark = pytest.mark.usefixtures("quiet")
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
REST, ADMIN, WEBHOOKS = "/api/v1/", "/admin/", "/webhooks/"
ROLES = ("signed in", "viewer", "operator", "administrator", "superuser", OWNER, STRANGER)
# `make test` asks the two that differ most: who may do nearly everything, and who sees what is one's own.
QUICK = ("administrator", OWNER)
EACH_ROLE = [
    role if role in QUICK else pytest.param(role, marks=pytest.mark.exhaustive) for role in ROLES
]
# It takes token and session by turns over REST, and GET and POST by turns of pages that have both.
BY_TURNS_OR_BOTH = [(role, 1) for role in QUICK] + [
    pytest.param(role, 2, marks=pytest.mark.exhaustive) for role in ROLES
]
# Who is asked for the methods without a line, too; the others can do no more than these.
PROBED = ("superuser", OWNER)
BY_ADDRESS: dict[str, list[policy.Line]] = {}
for _line in policy.lines():
    BY_ADDRESS.setdefault(_line.route, []).append(_line)
# A session and what Django notes of a login are no change of the register.
_WRITES = re.compile(
    r'^\s*(INSERT|UPDATE|DELETE)(?!.*("pools_browsersession"|"?pools_tokenuse))', re.IGNORECASE
)


def test_every_address_has_a_line_and_every_line_an_address() -> None:
    routes = {address.route for address in answers.addresses()}
    assert sorted(routes - set(BY_ADDRESS)) == []
    assert sorted(set(BY_ADDRESS) - routes) == []


def test_no_line_is_there_twice() -> None:
    counter = Counter((line.route, line.word, line.method) for line in policy.lines())
    assert [line for line, count in counter.items() if count > 1] == []


def test_the_lines_of_rest_are_the_methods_of_the_views() -> None:
    for address in answers.addresses("api/v1/"):
        view = address.view.cls
        actions = getattr(address.view, "actions", None) or dir(view)
        handled = {method for method in METHODS if method.lower() in actions}
        stated = {line.method for line in BY_ADDRESS[address.route]}
        assert handled - {"HEAD", "OPTIONS"} == stated, address.route
        needs = address.view.initkwargs.get("needs", getattr(view, "needs", {"GET": ()}))
        assert stated == set(needs), address.route


class RoleClient:
    """Somebody with a role, and what the product answers them."""

    def __init__(self, world: Everything, role: str) -> None:
        self.world, self.role, self.user = world, role, None
        self.session = self.token = Client(raise_request_exception=False)
        if role == "anybody":
            return
        self.user = world.user("nobody" if role == "signed in" else role)
        self.session, self.token = everything.session(self.user), everything.token(self.user)
        world.rows["knox.authtoken"] = AuthToken.objects.get(user=self.user).pk
        self._cookies = {name: cookie.value for name, cookie in self.session.cookies.items()}

    def __call__(self, client: Client, method: str, path: str, body: Any = None) -> Any:
        """An answer whose changes are undone."""
        if client is self.session and self.user is not None:
            client.cookies.load(self._cookies)  # without what a logout left
        call = getattr(client, method.lower())
        with transaction.atomic():
            if path.startswith(ADMIN):
                answer = call(path)
            else:
                answer = (
                    call(
                        path,
                        "" if body is None else json.dumps(body),
                        content_type="application/json",
                    )
                    if method not in {"GET", "HEAD"}
                    else call(path)
                )
            transaction.set_rollback(True)
        return answer


def _refused(answer: Any, address: answers.Address) -> bool:
    """403; or, of an object that somebody does not see, what is said of one that is not there."""
    if answer.status_code == 404 or (answer.status_code == 302 and address.route.startswith(ADMIN)):
        return bool(address.names)
    return bool(answer.status_code == 403)


def _succeeded(answer: Any, case: requests.Case) -> bool:
    if case.status:
        return bool(answer.status_code == case.status)
    location = answer.headers.get("Location", "")
    return answer.status_code < 400 and "/admin/login/" not in location


@pytest.fixture(scope="module")
def _everything(module_transaction: None) -> Everything:
    """Made once: each request is undone, and each test."""
    return everything.create()


@pytest.fixture
def world(_everything: Everything, db: None) -> Everything:
    return replace(_everything, rows=dict(_everything.rows), values=dict(_everything.values))


@pytest.mark.parametrize(("role", "number"), BY_TURNS_OR_BOTH)
def test_rest(world: Everything, role: str, number: int) -> None:
    caller = RoleClient(world, role)
    clients = itertools.cycle([caller.token, caller.session])
    wrong = []
    for address in answers.addresses("api/v1/"):
        lines = {(line.method, line.word): line for line in BY_ADDRESS[address.route]}
        for (method, word), line in lines.items():
            if role == STRANGER and line.owner == "own" and method != "GET" and not address.names:
                continue  # what bodies that name others' things do is swept elsewhere
            path, case = requests.request(world, address, method, word)
            for client in itertools.islice(clients, number):
                answer = caller(client, method, path, case.body)
                right = _succeeded(answer, case) if line.allows(role) else _refused(answer, address)
                if not right:
                    wrong.append((method, path, word, answer.status_code, answer.content[:200]))
    assert not wrong, wrong


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", PROBED)
def test_rest_knows_no_other_method(world: Everything, role: str) -> None:
    caller = RoleClient(world, role)
    for address in answers.addresses("api/v1/"):
        path, _ = requests.request(world, address, "GET")
        stated = {line.method for line in BY_ADDRESS[address.route]}
        assert list(_other_methods(caller, path, stated)) == [], path


def _other_methods(caller: RoleClient, path: str, stated: set[str]) -> Iterator[tuple[str, int]]:
    """Those of the methods without a line that are not refused; HEAD goes with GET."""
    for method in METHODS:
        if method in stated or (method == "HEAD" and "GET" in stated):
            continue
        status = caller(caller.token, method, path).status_code
        if status != 405 and (method, status) != ("OPTIONS", 200):
            yield method, status


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["signed in", "viewer", OWNER])
def test_head_is_answered_as_get_is(world: Everything, role: str) -> None:
    caller = RoleClient(world, role)
    for address in answers.addresses("api/v1/"):
        if any(line.method == "GET" for line in BY_ADDRESS[address.route]):
            path, _ = requests.request(world, address, "GET")
            statuses = {
                caller(caller.token, method, path).status_code for method in ("GET", "HEAD")
            }
            assert len(statuses) == 1, path


def test_without_a_login(world: Everything) -> None:
    caller = RoleClient(world, "anybody")
    for address in answers.addresses():
        if address.route.startswith(WEBHOOKS):
            continue
        open_to_all = {line.method for line in BY_ADDRESS[address.route] if line.role == "anybody"}
        path, _ = requests.request(world, address, "GET")
        for method in METHODS:
            answer = caller(caller.session, method, path)
            where = (method, path, answer.status_code)
            if method in open_to_all or (method == "HEAD" and "GET" in open_to_all):
                # A POST without its body may be a bad request.
                assert answer.status_code in {200, 302, 400 if method == "POST" else 200}, where
            elif address.route.startswith(ADMIN) and method in {"GET", "HEAD", "POST"}:
                assert answer.status_code in {302, 405}, where
                # A logout without a login leads to the first page, and that to the login.
                location = answer.headers.get("Location", "/admin/")
                assert location == "/admin/" or location.startswith("/admin/login/"), where
            elif address.route.endswith("v1/docs/") and method in {"GET", "HEAD"}:  # a page
                assert answer.status_code == 302, where
                assert answer.headers["Location"].startswith("/admin/login/"), where
            else:
                assert answer.status_code in {401, 405}, where
                if address.route.startswith(REST):
                    assert answer.headers["WWW-Authenticate"] == "Bearer", where


@pytest.mark.exhaustive
def test_a_token_opens_no_page(world: Everything) -> None:
    caller = RoleClient(world, "superuser")
    for address in answers.addresses("admin/"):
        if not any(line.role == "anybody" for line in BY_ADDRESS[address.route]):
            path, _ = requests.request(world, address, "GET")
            assert "/admin/login/" in caller(caller.token, "GET", path).headers["Location"], path


@pytest.mark.parametrize(("role", "number"), BY_TURNS_OR_BOTH)
def test_pages(world: Everything, role: str, number: int) -> None:
    """A POST without a field: who may not do it is refused before anything is read."""
    caller = RoleClient(world, role)
    turns = itertools.cycle(("GET", "POST"))
    wrong = []
    for address in answers.addresses("admin/"):
        lines = {line.method: line for line in BY_ADDRESS[address.route]}
        path, case = requests.request(world, address, "GET")
        for method in itertools.islice(turns, number if len(lines) == 2 else 2):
            if method not in lines and role not in PROBED:
                continue
            with CaptureQueriesContext(connection) as queries:
                answer = caller(caller.session, method, path)
            line = lines.get(method)
            if line is None:
                right = not [query for query in queries if _WRITES.match(query["sql"])]
                right = right and answer.status_code < 500
            elif line.allows(role) and method == "POST":
                right = answer.status_code < 500 and answer.status_code not in {401, 403, 405}
            elif line.allows(role):
                right = _succeeded(answer, case)
                # The query may name the VM owner's row, too.
                right = right or (role == STRANGER and answer.status_code == 404 and case.query)
            else:
                right = _refused(answer, address)
            if not right:
                wrong.append((method, path, answer.status_code, answer.headers.get("Location")))
    assert not wrong, wrong


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "DELETE", "TRACE"])
def test_pages_know_no_other_method(world: Everything, method: str) -> None:
    caller = RoleClient(world, "superuser")
    for address in answers.addresses("admin/"):
        path, _ = requests.request(world, address, "GET")
        answer = caller(caller.session, method, path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD, POST"), path


@pytest.mark.parametrize("role", EACH_ROLE)
def test_actions(world: Everything, role: str) -> None:
    """What a list offers to do, which is also all that it does (Django looks there)."""
    stated = {(action.table, action.name): action for action in policy.actions()}
    offered = set()
    request = RequestFactory().post("/")
    request.user = RoleClient(world, role).user  # type: ignore[assignment]
    for model, page in admin.site._registry.items():
        for name in page.get_actions(request):
            offered.add((f"{model._meta.app_label}/{model._meta.model_name}", name))
    assert offered == {key for key, action in stated.items() if action.allows(role)}


def test_api_servers_come_with_a_key_and_nobody_else(world: Everything) -> None:
    """No role opens a webhook; with the cluster's key only the body is wrong."""
    for role in ("anybody", "superuser"):
        caller = RoleClient(world, role)
        for address in answers.addresses("webhooks/"):
            assert {line.role for line in BY_ADDRESS[address.route]} == {policy.API_SERVER}
            good = [world.values[name] for name in address.names]
            bad = ["x" if name == "key" else world.values[name] for name in address.names]
            expected = 400 if "key" in address.names else 403
            assert caller(caller.token, "POST", address.filled(*good), {}).status_code == expected
            assert caller(caller.token, "POST", address.filled(*bad), {}).status_code == 403
            for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
                assert caller(caller.token, method, address.filled(*good)).status_code == 405


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", EACH_ROLE)
def test_metrics(world: Everything, role: str) -> None:
    caller = RoleClient(world, role)
    (line,) = BY_ADDRESS["/metrics"]
    for client in (caller.session, caller.token):
        assert caller(client, "GET", "/metrics").status_code == (200 if line.allows(role) else 403)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert caller(client, method, "/metrics").status_code in {403, 405}
