"""imports/ has the imports of all kinds; each kind has its own fields, rows, permissions and tokens."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from knox.models import AuthToken

from claims.models import Network
from pools.models import Import, TokenLevel, TokenScope
from tests.claims import worlds
from tests.claims.imports.drafts import mac, row
from tests.edges import api as apis

VM = {"cluster": "prod", "rows": [row("web", mac(1), "10.0.0.11")]}
REGISTER = {"kind": "register", "cluster": "prod", "text": "prefix\n10.80.0.0/24\n"}
BODIES = {"vm": VM, "register": REGISTER}
FILES = {"vm": f"vm,mac,ips\nweb,{mac(1)},10.0.0.11\n", "register": REGISTER["text"]}


@pytest.fixture(autouse=True)
def network(db: None) -> Network:
    return worlds.network()


@pytest.fixture
def ids() -> dict[str, int]:
    """A draft of each kind, by its kind."""
    api = apis.Api()
    return {kind: api.create("imports/", body)["id"] for kind, body in BODIES.items()}


def with_permissions(*names: str) -> apis.Api:
    api = apis.Api("vm-owner")
    api.user.groups.clear()
    codenames = [name.partition(".")[2] for name in names]
    api.user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return api


def listed(api: apis.Api, query: str = "") -> list[str]:
    return [item["kind"] for item in api("GET", f"imports/{query}").json()["results"]]


def test_the_list_has_all_kinds_that_the_user_may_see(ids: dict[str, int]) -> None:
    api = apis.Api("viewer")
    assert listed(api) == ["register", "vm"]  # the newest first
    assert listed(api, "?kind=vm&cluster=prod&status=drafted") == ["vm"]
    assert listed(api, "?target=ippool") == ["vm"]
    assert listed(api, "?limit=1&ordering=id") == ["vm"]
    apis.refused(api("GET", "imports/?kind=pool"), 400, "invalid_choice")
    assert api("GET", "imports/?fields=id,target,mirror").json()["results"] == [
        {"id": ids["register"], "mirror": False},
        {"id": ids["vm"], "target": "ippool"},
    ]
    assert listed(with_permissions("pools.view_registerimport")) == ["register"]
    every = with_permissions("claims.view_vmimport", "claims.view_every_namespace")
    assert listed(every, "?cluster=prod") == ["vm"]
    assert listed(with_permissions("claims.view_vmimport")) == []
    apis.refused(with_permissions()("GET", "imports/"), 403, "permission_denied")


def test_a_kind_has_its_own_fields_and_rows(ids: dict[str, int], api: apis.Api) -> None:
    vm, register = (api("GET", f"imports/{ids[kind]}/").json() for kind in ("vm", "register"))
    assert (vm["kind"], register["kind"]) == ("vm", "register")
    assert {"target", "port_groups"} <= vm.keys()
    assert {"holder_kind", "mirror"} <= register.keys()
    assert not register.keys() & {"target", "network", "port_groups"}
    rows = f"imports/{ids['register']}/rows/"
    assert api("GET", f"{rows}?target=pool&q=10.80").json()["results"][0]["cluster"] == "prod"
    apis.refused(api("GET", f"{rows}?port_group=x"), 400, "unknown_parameter")
    apis.refused(api("GET", f"imports/{ids['vm']}/rows/?target=pool"), 400, "unknown_parameter")
    apis.refused(api("PATCH", f"{rows}1/", {"free_address": True}), 400, "unknown_field")


@pytest.mark.parametrize(("method", "action"), [("GET", "manifest"), ("POST", "missing-addresses")])
def test_what_only_vms_have(ids: dict[str, int], method: str, action: str, api: apis.Api) -> None:
    assert api(method, f"imports/{ids['vm']}/{action}/").status_code == 200
    apis.refused(api(method, f"imports/{ids['register']}/{action}/"), 404, "not_found")


@pytest.mark.parametrize(("kind", "other"), [("vm", "register"), ("register", "vm")])
def test_each_kind_has_permissions_of_its_own(ids: dict[str, int], kind: str, other: str) -> None:
    names = {"vm": "claims.{}_vmimport", "register": "pools.{}_registerimport"}
    every = ("claims.view_every_namespace", "claims.request_address")
    looks = with_permissions(names[kind].format("view"), names[other].format("change"), *every)
    assert looks("GET", f"imports/{ids[kind]}/").status_code == 200
    for path in ("", "rows/", "rows/1/"):
        apis.refused(looks("GET", f"imports/{ids[other]}/{path}"), 404, "not_found")
    for path in ("cancel/", "check/", "commit/", "undo/"):
        answer = looks("POST", f"imports/{ids[kind]}/{path}")
        apis.refused(answer, 403, "permission_denied")
        apis.refused(looks("POST", f"imports/{ids[other]}/{path}"), 404, "not_found")
    apis.refused(looks("PATCH", f"imports/{ids[kind]}/rows/1/", {"skip": True}), 403, "permission_denied")  # fmt: skip
    changes = with_permissions(names[kind].format("view"), names[kind].format("change"), *every)
    assert changes("POST", f"imports/{ids[kind]}/cancel/").json()["status"] == "cancelled"
    assert Import.objects.get(pk=ids[other]).status == "drafted"


def test_the_kind_of_a_new_import_is_a_field(api: apis.Api) -> None:
    assert api.create("imports/", VM | {"kind": "vm"})["kind"] == "vm"
    assert api.create("imports/", VM | {"kind": None})["kind"] == "vm"
    for kind in ("pool", "", 1):
        problem = api("POST", "imports/", VM | {"kind": kind}).json()
        assert problem["errors"][0]["field"] == "kind"
    adds = with_permissions("pools.add_registerimport")
    apis.refused(adds("POST", "imports/", VM), 403, "permission_denied")
    assert adds.create("imports/", REGISTER)["kind"] == "register"


@pytest.mark.parametrize("kind", FILES)
def test_the_same_form_under_the_same_key_is_one_import(kind: str, api: apis.Api) -> None:

    def send(text: str, **values: Any) -> Any:
        file = SimpleUploadedFile("a.csv", text.encode())
        form = {"kind": kind, "cluster": "prod", "file": file, **values}
        return api.client.post(f"{apis.ROOT}imports/", form, headers={"Idempotency-Key": "k"})

    first = send(FILES[kind])
    assert (first.status_code, first.json()["kind"]) == (201, kind), first.content
    assert send(FILES[kind]).json() == first.json()
    assert send(FILES[kind] + "\n").status_code == 422
    assert send(FILES[kind], skip_bad="true").status_code == 422
    assert Import.objects.count() == 1


def test_a_token_of_a_cluster_knows_no_import_that_may_leave_it(ids: dict[str, int]) -> None:
    api = apis.Api()
    TokenScope.objects.create(
        token=AuthToken.objects.get(user=api.user),
        level=TokenLevel.ADMINISTER,
        cluster=worlds.cluster(),
    )
    assert listed(api) == ["vm"]
    assert api("GET", f"imports/{ids['vm']}/").status_code == 200
    for path in ("", "rows/", "rows/1/"):
        apis.refused(api("GET", f"imports/{ids['register']}/{path}"), 404, "not_found")
    apis.refused(api("POST", f"imports/{ids['register']}/commit/"), 404, "not_found")
    assert api("POST", "imports/", VM).status_code == 201
    apis.refused(api("POST", "imports/", REGISTER), 403, "token_scope")


def test_an_allocating_token_changes_imports_of_vms_only(ids: dict[str, int]) -> None:
    api = apis.Api()
    TokenScope.objects.create(token=AuthToken.objects.get(user=api.user), level=TokenLevel.ALLOCATE)
    assert api("POST", f"imports/{ids['vm']}/check/").status_code == 200
    assert api("GET", f"imports/{ids['register']}/").status_code == 200
    apis.refused(api("POST", f"imports/{ids['register']}/check/"), 403, "token_scope")
    apis.refused(api("POST", "imports/", REGISTER), 403, "token_scope")
