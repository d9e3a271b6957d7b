"""A Python client that a public generator makes of the OpenAPI document does the first five things of the tutorial."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.test import Client
from knox.models import AuthToken

from tests.edges import api as apis

PACKAGE = "cadastre_client"
LARGEST = 500_000  # bytes of the document


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    call_command("spectacular", "--fail-on-warn", "--format", "openapi-json", file=str(path))
    return path


@pytest.fixture(scope="module")
def generated(document: Path) -> Any:
    """The package that openapi-python-client generates."""
    config = document.with_name("config.yaml")
    config.write_text("post_hooks: []\n")
    command = [
        sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document),
        "--config", str(config), "--meta", "none", "--output-path", str(document.parent / PACKAGE),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    sys.path.insert(0, str(document.parent))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(document.parent))
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_the_size_of_the_document(document: Path) -> None:
    text = document.read_text()  # the site answers without its indentation
    assert len("".join(line.strip() for line in text.splitlines())) < LARGEST


def _send(request: httpx.Request) -> httpx.Response:
    """The site's answer in this process, in the transaction of the test."""
    answer = Client().generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        content_type=request.headers.get("Content-Type", ""),
        headers={"Authorization": request.headers["Authorization"]}
        | {key: value for key, value in request.headers.items() if key == "idempotency-key"},
    )
    return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


def test_the_first_five_things(generated: Any) -> None:
    models = generated("models")
    token = AuthToken.objects.create(apis.user())[1]
    transport = httpx.MockTransport(_send)
    client = generated("client").AuthenticatedClient(
        base_url="http://testserver",
        token=token,
        prefix="Token",
        httpx_args={"transport": transport},
    )

    def call(operation: str, *arguments: Any, **options: Any) -> Any:
        return generated(f"api.{operation}").sync(*arguments, client=client, **options)

    body = models.ClusterCreateRequest(name="prod", cluster_prefix=apis.PREFIX)
    cluster = call("clusters.clusters_create", body=body)
    assert isinstance(cluster, models.Cluster)
    page = call("pools.pools_list", cluster="prod", category=models.PoolsListCategory.INSTANCE)
    (pool,) = page.results
    assert pool.ipv6.cidrs[0].cidr == "2001:db8:10:1::/64"
    holder = models.HolderRequest(kind="instance", id="i-1")
    demand = models.BlockDemandRequest(holder=holder, org="o", env="e")
    options = {"body": demand, "idempotency_key": "once"}
    allocated = call("pools.pools_allocations_create", pool.id, **options)
    assert isinstance(allocated, models.AllocatedBlocks), allocated
    (block,) = allocated.blocks
    (again,) = call("pools.pools_allocations_create", pool.id, **options).blocks
    assert (block.address, again.id) == ("2001:db8:10:1::1", block.id)
    released = call(
        "blocks.blocks_release_create", block.id, body=models.ReleaseRequest(holder=holder)
    )
    assert released.state == "cooling"
    address = call("addresses.addresses_retrieve", "2001:db8:10:1::1")
    assert {tenure.holder.id for tenure in address.history} == {"i-1"}
    refused = call("pools.pools_allocations_create", pool.id, body=models.BlockDemandRequest())
    assert isinstance(refused, models.Problem)
    assert refused.status == 400
