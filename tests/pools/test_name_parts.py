"""Parts of names are found in tables of any size: no row too many, none missing, the first in order."""

from __future__ import annotations

import pytest
from django.db import connection

from pools.models import Environment, ObservedObject
from pools.platform import name_parts
from tests import factories

pytestmark = pytest.mark.django_db
MANY = 21_000  # more than are read in their order
RARE = ("zrh-Web-1", "zrh-web-2", "zürich-1", "zÜrich-2", "50%_off", "straße", "z", "zz", "a b")


@pytest.fixture
def names() -> list[str]:
    """The names of more objects than are read in their order; rare ones come last."""
    cluster = factories.cluster()
    names = [*(f"node-{n}" for n in range(MANY)), *(f"z{n}-{name}" for n, name in enumerate(RARE))]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO pools_observedobject (cluster_id, kind, api_version, namespace, name, uid, resource_version,"
            " manifest, problem_code, problem, pending, first_seen_at, changed_at)"
            " SELECT %s, 'Node', 'v1', '', name, name, '1', '{}', '', '', false, now(), now() FROM unnest(%s::text[]) AS name",
            [cluster.pk, names],
        )
    return names


PARTS = (
    *RARE, "node-2099", "099", "99", "de-20", "zrh", "rh-w", "rh-W", "WEB", "üri", "ÜRI", "ür", "ü", "%_", "%",
    "raße", "ss", "b", " b", "-", "node-", "nothing", "zr", "no", "z0", "'", "\\", "{", '"a,', "",
)  # fmt: skip


def test_it_finds_what_contains_the_part(names: list[str]) -> None:
    order = ("cluster", "kind", "namespace", "name")
    rows = ObservedObject.objects.all()
    for part in PARTS:
        keys = name_parts.first_keys(rows, part, ("name",), order, 50)
        found = rows.filter(keys).order_by("name").values_list("name", flat=True)
        assert [*found] == sorted(name for name in names if part in name)[:50], part


def test_it_finds_parts_of_several_columns() -> None:
    cluster = factories.cluster()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO pools_environment (cluster_id, org, env, reason, message, description)"
            " SELECT %s, 'acme', 'env-' || n, '', '', 'the zoo' FROM generate_series(1, %s) n",
            [cluster.pk, MANY],
        )
    rows = Environment.objects.all()
    for org, env in (("zoo", "x"), ("y", "a-zoo"), ("zo", "o")):
        Environment.objects.create(cluster=cluster, org=org, env=env)
    keys = name_parts.first_keys(rows, "zoo", ("env", "org"), ("cluster", "org", "env"), 50)
    assert {str(row) for row in rows.filter(keys)} == {"zoo/x", "y/a-zoo"}


def test_rare_parts_are_found_in_the_index(names: list[str]) -> None:
    with connection.cursor() as cursor:
        # Else the plan follows the statistics that others have left.
        cursor.execute("ANALYZE pools_observedobject")
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = name_parts.with_part(ObservedObject.objects.all(), "zrh-web").explain()
    assert "object_seen_ngrams" in plan
