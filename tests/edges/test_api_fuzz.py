"""Requests made from the OpenAPI description: whatever is sent, nothing is answered with 5xx."""

import copy
import json
from typing import Any

import pytest
import schemathesis
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, settings

from tests.edges import api as apis

EXAMPLES = 8
PROBLEM = {"type", "title", "status", "detail", "code", "request_id", "errors"}


def _bodies_of_json(document: Any) -> Any:
    """The description without forms, which are not sent here: schemathesis cannot check a choice of them."""
    reduced = copy.deepcopy(document)
    for operations in reduced["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                content.pop("multipart/form-data", None)
    return reduced


schema = schemathesis.openapi.from_dict(_bodies_of_json(apis.document()))


@pytest.fixture(scope="module")
def api(module_transaction: None) -> apis.Api:
    """Of a site with a cluster, which is made once: each request is undone."""
    created = apis.Api()
    created.create("clusters/", {"name": "prod", "cluster_prefix": "2001:db8:10::/48"})
    return created


# A parameter gives the tests of the operations an id each: pytest-xdist runs a single one of the same id.
@schema.parametrize()
@pytest.mark.parametrize("members", [PROBLEM], ids=["problem"])
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_site(case: Any, api: apis.Api, members: set[str]) -> None:
    with transaction.atomic():
        answer = _send(api.client, case)
        transaction.set_rollback(True)
    assert answer.status_code < 500, (case.method, case.path, answer.content[:300])
    if answer.status_code >= 400:
        assert set(answer.json()) >= members


def _send(client: Client, case: Any) -> Any:
    request = case.as_transport_kwargs(base_url="http://testserver")
    headers = {
        name: value
        for name, value in request["headers"].items()
        if name.lower() not in {"authorization", "cookie", "content-type"} and value.isascii()
    }
    body = request.get("json", request.get("data"))
    text = body if isinstance(body, str | bytes) else json.dumps(body, default=str)
    return client.generic(
        request["method"],
        request["url"].removeprefix("http://testserver"),
        "" if body is None else text,
        content_type="application/json",
        query_params=request.get("params") or {},
        headers=headers,
    )
