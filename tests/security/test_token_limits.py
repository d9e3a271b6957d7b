"""Levels and limits of tokens at every endpoint and method of REST; the owner of each token is a superuser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from claims.models import NAD
from pools.core.observed.uses import Role
from pools.models import Block, Cluster
from pools.platform.rest import token_scopes
from tests.claims import worlds
from tests.claims.access import answers
from tests.claims.imports import drafts
from tests.edges import api as apis
from tests.observed import rows
from tests.security import everything, policy, requests
from tests.security.everything import Everything

pytestmark = pytest.mark.usefixtures("quiet")
OTHER = "zebra"  # in the names of all that belongs to the other cluster
NO_DATA = {"/api/v1/docs/", "/api/v1/schema/"}  # of no cluster, but with examples
_WRITES = re.compile(r'^\s*(INSERT|UPDATE|DELETE)(?!.*"?pools_tokenuse)', re.IGNORECASE)
_MAC, _IP = "02:aa:aa:aa:aa:00", "10.60.0.20/24"  # of a VM in the cluster prod


@pytest.fixture(scope="module")
def _everything(module_transaction: None) -> Everything:
    """Made once: each request is undone, and each test."""
    created = everything.create()
    _add_other_cluster(created)
    return created


@pytest.fixture
def world(_everything: Everything, db: None) -> Everything:
    return _everything


def _add_other_cluster(world: Everything) -> None:
    """A cluster whose objects have addresses, MACs and namespaces of the cluster prod."""
    api = apis.Api()
    api.user.username = f"{OTHER}-author"
    api.user.save()
    api.cluster(OTHER, cluster_prefix=apis.PREFIX)
    cluster = Cluster.objects.get(name=OTHER)
    for name, category, size, cidr in (
        ("pods", "pod", 24, "10.6.0.0/16"),
        ("vms", "vm", 32, "10.0.0.0/29"),
        ("near", "ipv4", 32, "10.81.0.0/29"),
        ("far", "ipv4", 32, "10.80.0.0/29"),
    ):
        family = {"mask_size": size, "cidrs": [{"cidr": cidr}]}
        body = {"cluster": OTHER, "name": f"{OTHER}-{name}", "category": category, "ipv4": family}
        world.values[f"{OTHER}_{name}"] = api.create("pools/", body)["id"]
    api.take(world.values[f"{OTHER}_vms"], f"{OTHER}-held", env=f"{OTHER}-env")
    network = worlds.network(f"{OTHER}-net", subnets=("10.60.0.0/24",), of=cluster, namespace=OTHER)
    NAD.objects.create(network=network, namespace="alpha", name=f"{OTHER}-nad")
    worlds.entry(worlds.ippool(network, f"{OTHER}-ippool"), _MAC, _IP, vm="web-0", namespace="alpha", note=OTHER)  # fmt: skip
    worlds.claim(network, "web-0", _IP, namespace="alpha", mac=_MAC)
    worlds.workload(network, "web-0", _MAC, _IP, namespace="alpha", node=OTHER)
    drafts.draft(network, drafts.row(f"{OTHER}-5", _MAC, "10.60.0.20"), namespace="alpha")
    rows.observed(cluster, Role.SERVICES, "10.96.0.0/12", name=OTHER, uid=OTHER)
    world.values["other_network"] = network.pk


class Caller:
    """Requests with a new token; what they change is undone."""

    def __init__(self, level: str = "administer", to: str = "") -> None:
        text = token_scopes.create_token(
            apis.user(), level=level, subject=token_scopes.parse_subject(to)
        )
        self.client = Client(
            headers={"Authorization": f"Token {text}"}, raise_request_exception=False
        )

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        call = getattr(self.client, method.lower())
        text = "" if body is None else json.dumps(body)
        with transaction.atomic():
            answer = (
                call(path)
                if method in {"GET", "HEAD"}
                else call(path, text, content_type="application/json")
            )
            answer.text_sent = answer.getvalue().decode(errors="replace")
            transaction.set_rollback(True)
        return answer

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        return self(method, f"{apis.ROOT}{path}", body)


def _each_request(world: Everything) -> Iterator[tuple[policy.Line, str, requests.Case]]:
    """All methods of all endpoints of REST, as somebody asks who may do it."""
    addresses = {address.route: address for address in answers.addresses("api/v1/")}
    for line in policy.lines():
        if line.route in addresses:
            yield line, *requests.request(world, addresses[line.route], line.method, line.word)


def _documented(level: str) -> set[str]:
    """The requests beside GET that docs/reference/permissions.md lists for a level."""
    (item,) = re.findall(
        rf"^- `{level}`(.*?)(?=\n-|\n\n)", policy.PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return {
        f"{method} /api/v1/{route}"
        for methods, route in re.findall(r"`([A-Z ]+) ([^`]+)`", item)
        for method in methods.split()
    }


@pytest.mark.exhaustive
def test_a_reading_token_changes_nothing(world: Everything) -> None:
    caller, allowed = Caller("read"), set()
    for line, path, case in _each_request(world):
        with CaptureQueriesContext(connection) as queries:
            answer = caller(line.method, path, case.body)
        assert not [query["sql"] for query in queries if _WRITES.match(query["sql"])], path
        if line.method != "GET" and answer.status_code != 403:
            allowed.add(f"{line.method} {line.route}")
    assert allowed == _documented("read")


@pytest.mark.exhaustive
def test_an_allocating_token_does_what_is_documented(world: Everything) -> None:
    caller, allowed = Caller("allocate"), set()
    for line, path, case in _each_request(world):
        answer = caller(line.method, path, case.body)
        if line.method != "GET" and answer.status_code != 403:
            assert not line.word, path
            allowed.add(f"{line.method} {line.route}")
    assert allowed == _documented("read") | _documented("allocate")


@pytest.mark.exhaustive
def test_a_token_of_a_cluster_reads_nothing_of_another(world: Everything) -> None:
    caller, opened = Caller(to="prod"), 0
    for line, path, case in _each_request(world):
        answer = caller(line.method, path, case.body)
        opened += answer.status_code < 300
        assert OTHER not in answer.text_sent, path
    assert opened > 80


@pytest.mark.exhaustive
@pytest.mark.parametrize("to", [OTHER, f"{OTHER}/{OTHER}-far"])
def test_a_limited_token_reaches_nothing_outside(world: Everything, to: str) -> None:
    """Whatever names an object of the cluster prod is refused; lists have none of them."""
    caller, opened = Caller(to=to), 0
    for line, path, case in _each_request(world):
        answer = caller(line.method, path, case.body)
        if answer.status_code == 200 and line.route not in NO_DATA:
            opened += 1
            assert "{" not in line.route, path
            assert line.method == "GET", path
            assert '"prod"' not in answer.text_sent, path
            if "/" in to:
                names = set(re.findall(rf"{OTHER}-\w+", answer.text_sent))
                assert names <= {f"{OTHER}-far", f"{OTHER}-author"}, path
        elif line.route not in NO_DATA:
            assert answer.status_code in {403, 404}, path
    assert opened == (5 if "/" in to else 12)


def test_a_network_of_another_cluster_is_like_one_that_does_not_exist(world: Everything) -> None:
    caller, foreign = Caller(to="prod"), world.values["other_network"]
    new = {"cluster": "prod", "namespace": "alpha", "rows": [requests.VM_ROW]}
    draft = f"imports/{world.values['import_id']}/"
    for method, path, body, field in (
        ("POST", "imports/", new, "network"),
        ("PATCH", draft, {}, "network"),
        ("POST", "imports/", new, "mapping"),
        ("PATCH", draft, {}, "mapping"),
    ):
        answers_sent = []
        for network in (foreign, foreign + 10_000):
            value = network if field == "network" else {"a": {"network": network}}
            answer = caller.rest(method, path, body | {field: value})
            problem = apis.refused(answer, 400, "unknown_network")
            answers_sent.append(answer.text_sent.replace(str(network), "").replace(problem["request_id"], ""))  # fmt: skip
        assert answers_sent[0] == answers_sent[1], (method, path, field)


@pytest.mark.parametrize("path", ["blocks/", "events/", "leaks/", "requests/"])
def test_a_pool_of_another_cluster_is_like_one_that_does_not_exist(
    world: Everything, path: str
) -> None:
    caller = Caller(to="prod")
    for pool in (f"{OTHER}-far", world.values[f"{OTHER}_far"], "no-such-pool", 2**60):
        apis.refused(caller.rest("GET", f"{path}?pool={pool}"), 400, "unknown_pool")
    for pool in ("vms", world.values["pool_id"]):
        assert caller.rest("GET", f"{path}?pool={pool}").status_code == 200


def test_a_refusal_names_no_other_pool_to_a_token_of_a_pool(world: Everything) -> None:
    far, near = world.values[f"{OTHER}_far"], world.values[f"{OTHER}_near"]
    whole, limited = Caller(to=OTHER), Caller(to=f"{OTHER}/{OTHER}-far")
    holder = apis.holder("web-0")
    with transaction.atomic():
        assert apis.Api()("POST", f"pools/{near}/allocations/", holder).status_code == 201
        held_cidr = str(Block.objects.get(pool_id=near, state="held").cidr)
        for path, body, code, hidden_name in (
            (f"pools/{far}/cidrs/", {"cidr": "10.81.0.0/28"}, "cidr_overlap", f"{OTHER}-near"),
            (f"pools/{far}/allocations/", holder, "one_per_holder", held_cidr),
            (f"pools/{far}/allocations/", holder | {"wait": True}, "one_per_holder", held_cidr),
        ):  # fmt: skip
            refusal = apis.refused(whole.rest("POST", path, body), 409, code)
            assert hidden_name in refusal["detail"], refusal
            hidden = apis.refused(limited.rest("POST", path, body), 409, code)
            assert hidden_name not in json.dumps(hidden), hidden
        transaction.set_rollback(True)


@pytest.mark.parametrize("to", [OTHER, f"{OTHER}/{OTHER}-far"])
@pytest.mark.parametrize(
    "path", [f"pools/{2**70}/", f"blocks/{2**63}/", "clusters/a%00b/", f"blocks/?pool={2**70}", "blocks/?pool=a%00b", "blocks/?pool=%F0%9F%A6%93", "blocks/?cluster=a%00b", "events/?pool=%22", "pools/?name=%00"]
)  # fmt: skip
def test_what_no_table_can_store_is_refused(world: Everything, to: str, path: str) -> None:
    assert Caller(to=to).rest("GET", path).status_code in {400, 403, 404}
