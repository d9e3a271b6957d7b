"""What somebody who reads the description and nothing else stumbles over."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pools.api.allocations import AllocationRequestSerializer, EnvironmentSerializer
from pools.api.blocks import BlockSerializer
from pools.api.clusters.clusters import ClusterSerializer
from pools.api.pools import PoolSerializer
from pools.models import Cluster
from pools.platform.history.representation import EventSerializer
from pools.register.demo import demo
from tests.edges import api as apis


def test_an_uploaded_file_is_imported_once_under_its_key(api: apis.Api) -> None:
    def send(content: bytes) -> Any:
        part = {"file": SimpleUploadedFile("pools.yaml", content), "cluster": "prod"}
        return api.client.post(
            f"{apis.ROOT}pools/import/", part, headers={"Idempotency-Key": "k-1"}
        )

    first, again = send(demo.GREEN_POOL_V2), send(demo.GREEN_POOL_V2)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    apis.refused(send(demo.GREEN_POOL_V2 + b"\n"), 422, "idempotency_key_reused")


@pytest.mark.parametrize("part", ["node_prefix", "instance_prefix"])
def test_a_part_of_no_prefix_is_refused(api: apis.Api, part: str) -> None:
    answer = api("POST", "clusters/", {"name": "other", part: "2001:db8::/64"})
    assert apis.fields(apis.refused(answer, 400, "required")) == {"cluster_prefix": "required"}
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize("body", [{"reserved_ranges": ["10.0.1.0/30"]}, {"cidr": None}])
def test_a_cidr_that_is_missing_is_named(api: apis.Api, body: dict[str, Any]) -> None:
    path = f"pools/{api.vm_pool('10.0.0.0/29')}/cidrs/"
    assert apis.fields(apis.refused(api("POST", path, body), 400, "required")) == {
        "cidr": "required"
    }


def test_a_wrong_cidr_is_named_as_it_was_written(api: apis.Api) -> None:
    path = f"pools/{api.vm_pool('10.0.0.0/29')}/cidrs/"
    body = {"cidr": "10.0.1.0/29", "reserved_ranges": ["10.0.1.0-10.0.1.1", "10.0.9.0/30"]}
    for change, fields in (
        ({"cidr": "10.0.0.1/24"}, {"cidr": "host_bits_set"}),
        (body, {"reserved_ranges.1": "range_outside_cidr"}),
    ):
        assert apis.fields(api("POST", path, change).json()) == fields


@pytest.mark.parametrize("block", ["10.0.0.1", "10.0.0.1/32"])
def test_the_events_of_one_address(api: apis.Api, block: str) -> None:
    pool = api.vm_pool("10.0.0.0/29")
    api.take(pool, "a")
    api.take(pool, "b")
    (event,) = api("GET", f"events/?block={block}").json()["results"]
    assert event["holder"]["id"] == "a"


def test_the_description_names_every_field_of_a_row(api: apis.Api) -> None:
    pool = api.vm_pool("10.0.0.0/32")
    api.take(pool, "a", env="e")
    api("POST", f"pools/{pool}/allocations/", apis.holder("b") | {"wait": True})
    for path, fields in (
        ("blocks/", BlockSerializer().fields),
        ("clusters/", ClusterSerializer().fields),
        ("environments/", EnvironmentSerializer().fields),
        ("events/", EventSerializer().fields),
        ("pools/", PoolSerializer().fields),
        ("requests/", AllocationRequestSerializer().fields),
    ):
        assert set(api("GET", path).json()["results"][0]) == set(fields), path
        every = api("GET", f"{path}?fields={','.join(fields)}")
        assert every.json()["results"] == api("GET", path).json()["results"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "clusters/", {"name": "other"}),
        ("PATCH", "pools/{}/", {"description": "x"}),
        ("DELETE", "pools/{}/", None),
        ("POST", "pools/{}/allocations/", apis.holder("a")),
    ],
)
def test_a_change_with_an_unknown_parameter_is_refused(
    api: apis.Api, method: str, path: str, body: Any
) -> None:
    path = path.format(api.vm_pool("10.0.0.0/29"))
    apis.refused(api(method, f"{path}?dry_run=true", body), 400, "unknown_parameter")
    assert api(method, path, body).status_code < 300


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"label": "x"}), ("DELETE", None)])
def test_an_etag_is_refused_where_there_are_none(api: apis.Api, method: str, body: Any) -> None:
    field = {"name": "rack", "label": "Rack", "type": "text", "object_types": ["pool"]}
    path = f"custom-fields/{api.create('custom-fields/', field)['id']}/"
    apis.refused(api(method, path, body, If_Match='"1"'), 412, "version_mismatch")
    assert api(method, path, body, If_Match="*").status_code < 300


def test_a_cidr_of_no_pool(api: apis.Api) -> None:
    apis.refused(api("POST", f"pools/{1 << 40}/cidrs/", {"cidr": "10.5.0.0/29"}), 404, "not_found")


def test_a_form_instead_of_json(api: apis.Api) -> None:
    path = f"{apis.ROOT}pools/{api.vm_pool('10.0.0.0/29')}/allocations/"
    apis.refused(api.client.post(path, {"holder": "a"}), 415, "unsupported_media_type")
