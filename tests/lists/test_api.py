"""blocks/ by org, environment, node, instance, cluster, pool, category and state, in keyset pages."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import factories
from tests.edges import api as apis


def _register() -> str:
    cluster = factories.cluster()
    nodes = factories.pool("fd00::/112", category="node", within=cluster)
    factories.take(nodes, factories.holder("n-1", kind="node"))
    instances = factories.pool("fd01::/112", category="instance", within=cluster)
    factories.take(instances, factories.holder("n-1", kind="instance"), org="acme", env="prod")
    factories.take(factories.pool("10.0.0.0/24"), factories.holder("n-1"), org="acme")
    return cluster.name


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("node=n-1", 1), ("instance=n-1", 1), ("instance=n-2", 0), ("holder_id=n-1", 3), ("org=acme", 2),
        ("org=acme&env=prod", 1), ("category=node", 1), ("category=vm&state=held", 1), ("state=cooling", 0),
        ("family=6", 2),
    ],
)  # fmt: skip
def test_filters(query: str, count: int) -> None:
    name = _register()
    api = apis.Api("viewer")
    assert len(api("GET", f"blocks/?{query}").json()["results"]) == count
    results = api("GET", f"blocks/?cluster={name}").json()["results"]
    assert {item["cluster"] for item in results} == {name}


def test_a_page_costs_the_same_whatever_is_on_it() -> None:
    pool = factories.pool("10.0.0.0/24")
    api = apis.Api("viewer")
    api("GET", "blocks/")  # notes the use of the token
    counts = []
    for _ in range(2):
        factories.ask(pool, *factories.holders(20))
        with CaptureQueriesContext(connection) as observed:
            api("GET", "blocks/?org=&ordering=cidr&limit=1000")
        counts.append(len(observed))
    assert counts[0] == counts[1]
