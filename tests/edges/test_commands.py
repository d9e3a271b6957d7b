"""`manage.py cluster` and `manage.py pools import`: what they print, make and refuse."""

from pathlib import Path

import pytest
from django.core.management import CommandError

from pools.models import Cluster, Pool
from tests import commands
from tests.core.pod_pool_texts import PROPOSED


def test_a_prefix_is_divided() -> None:
    run = commands.output("cluster", "add", "prod", "--prefix", "2001:db8:10::/48")
    assert "2001:db8:10::/64" in run
    assert "2001:db8:10:1::/64" in run


def test_a_prefix_is_divided_later_and_otherwise() -> None:
    commands.output("cluster", "add", "prod")
    commands.output(
        "cluster", "divide", "prod", "--prefix", "2001:db8::/32",
        "--node-prefix", "2001:db8:1::/64", "--instance-prefix", "2001:db8:2::/64",
    )  # fmt: skip
    cidrs = {pool.category: str(pool.cidrs.get()) for pool in Pool.objects.all()}
    assert cidrs == {"node": "2001:db8:1::/64", "instance": "2001:db8:2::/64"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["cluster", "add", "prod", "--prefix", "2001:db8::/65"], "cluster_prefix"),
        (["cluster", "add", "prod", "--prefix", "10.0.0.0/8"], "cluster_prefix"),
        (["cluster", "add", "Prod_1"], "k8s_name"),
        (["cluster", "divide", "nobody", "--prefix", "2001:db8::/48"], "not_found"),
    ],
    ids=["small", "IPv4", "name", "unknown"],
)
def test_a_refusal_names_its_code(arguments: list[str], code: str) -> None:
    with pytest.raises(CommandError, match=code):
        commands.output(*arguments)
    assert not Cluster.objects.exists()


def test_the_pools_of_a_file(tmp_path: Path) -> None:
    commands.output("cluster", "add", "prod")
    file = tmp_path / "pools.yaml"
    file.write_text(PROPOSED)
    assert "created" in commands.output(
        "pools", "import", str(file), "--cluster", "prod", "--dry-run"
    )
    assert not Pool.objects.exists()
    assert "created" in commands.output("pools", "import", str(file), "--cluster", "prod")
    pool = Pool.objects.get(name="green-pool")
    assert [str(cidr) for cidr in pool.cidrs.all()] == ["10.20.0.0/16", "10.30.0.0/16"]
    assert str(pool.reserved_ranges.get()) == "10.20.0.0-10.20.0.99"
    assert "unchanged" in commands.output("pools", "import", str(file), "--cluster", "prod")
