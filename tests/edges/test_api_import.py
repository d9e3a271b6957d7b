"""pools/import/: all or nothing, with a report; tests/core/pod_pool_texts.py has the shapes of manifests."""

from typing import Any

import pytest
from django.core.files import uploadedfile

from tests.core.pod_pool_texts import HELM, PROPOSED, TODAY
from tests.edges import api as apis

pytestmark = pytest.mark.django_db


@pytest.fixture
def api() -> apis.Api:
    api = apis.Api()
    api.cluster()
    return api


def _import(api: apis.Api, manifest: str, query: str = "") -> Any:
    return api("POST", f"pools/import/{query}", {"cluster": "prod", "manifest": manifest})


def _said(api: apis.Api) -> dict[str, list[tuple[str, list[str]]]]:
    """Pool -> its IPv4 CIDRs with their ranges."""
    return {
        pool["name"]: [(cidr["cidr"], cidr["reserved_ranges"]) for cidr in pool["ipv4"]["cidrs"]]
        for pool in api("GET", "pools/").json()["results"]
    }


RESERVED = ("10.20.0.0/16", ["10.20.0.0-10.20.0.99"])


def test_a_later_version_changes_the_pool(api: apis.Api) -> None:
    assert _import(api, TODAY).status_code == 201
    again = _import(api, TODAY)
    assert (again.status_code, again.json()["reports"][0]["result"]) == (200, "unchanged")
    (report,) = _import(api, PROPOSED).json()["reports"]
    assert (report["result"], report["pool_id"]) == ("changed", api.pool("pod"))
    assert _said(api)["green-pool"][0] == RESERVED


def test_one_bad_object_of_a_file_stops_all(api: apis.Api) -> None:
    bad = TODAY.replace("green-pool", "blue-pool").replace("10.20.0.0", "10.40.0.1")
    other = HELM.replace("10.20.0.0", "10.50.0.0")
    answer = _import(api, f"{TODAY}---\n{bad}---\n{other}")
    problem = apis.refused(answer, 400, "import_refused")
    assert [(r["document"], r["result"]) for r in problem["reports"]] == [
        (0, "created"), (1, "refused"), (2, "created"), (2, "created"),
    ]  # fmt: skip
    (error,) = problem["errors"]
    assert error["field"] == "reports.1.spec.ipv4.cidrs.0"
    assert error["code"] == "host_bits_set"
    assert _said(api) == {}


def test_a_dry_run_says_what_would_happen(api: apis.Api) -> None:
    answer = _import(api, HELM, "?dry_run=true")
    assert (answer.status_code, len(answer.json()["reports"])) == (200, 2)
    assert _said(api) == {}


@pytest.mark.parametrize("media_type", ["application/yaml", "text/yaml", "application/x-yaml"])
def test_yaml_as_it_is(api: apis.Api, media_type: str) -> None:
    url = f"{apis.ROOT}pools/import/?cluster=prod"
    assert api.client.post(url, PROPOSED, content_type=media_type).status_code == 201


def test_a_file_is_uploaded(api: apis.Api) -> None:
    file = uploadedfile.SimpleUploadedFile("../../pools.yaml", HELM.encode())
    answer = api.client.post(f"{apis.ROOT}pools/import/", {"file": file, "cluster": "prod"})
    assert answer.status_code == 201, answer.content


def test_an_import_names_its_cluster(api: apis.Api) -> None:
    apis.refused(api("POST", "pools/import/", {"manifest": HELM}), 400, "required")
    body = {"manifest": HELM, "cluster": "nowhere"}
    apis.refused(api("POST", "pools/import/", body), 400, "unknown_cluster")
    apis.refused(api("POST", "pools/import/", {"cluster": "prod"}), 400, "required")
