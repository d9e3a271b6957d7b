"""The bad-input catalogue through `manage.py pools import` and `manage.py cluster`: the codes of
every other door, and nothing is written.
"""

import io
import json
import pathlib
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pools.models import Cluster, Pool, PoolCIDR, ReservedRange
from tests import factories
from tests.core import catalogue

WITHIN = {4: "10.0.0.0/8", 6: "fd00::/16"}


def _is_v6(value: object) -> bool:
    return ":" in str(value)[:20].replace("::ffff:", "")  # a mapped address is an IPv4 one


def _manifest(cidr: object, *, mask_size: object = None, **more: object) -> bytes:
    is_v6 = ":" in str(cidr)[:20]
    size = mask_size if mask_size is not None else 128 if is_v6 else 32
    part = {"maskSize": size, "cidrs": [{"cidr": cidr, **more}]}
    document = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "blue"},
        "spec": {"ipv6" if is_v6 else "ipv4": part},
    }
    return json.dumps(document).encode()  # JSON is YAML


def _cidr(case: catalogue.Case) -> bytes:
    return _manifest(case.value)


def _range(case: catalogue.Case) -> bytes:
    within = case.within or WITHIN[6 if _is_v6(case.value) else 4]
    return _manifest(str(within), reservedRange=case.value)


def _mask_size(case: catalogue.Case) -> bytes:
    prefix = case.within if isinstance(case.within, str) else WITHIN[case.within or 4]
    return _manifest(prefix, mask_size=case.value)


def _document(case: catalogue.Case) -> bytes:
    return case.value if isinstance(case.value, bytes) else str(case.value).encode()


FILES = {"cidr": _cidr, "range": _range, "mask_size": _mask_size, "document": _document}


def _rows() -> list[int]:
    return [model.objects.count() for model in (Cluster, Pool, PoolCIDR, ReservedRange)]


def _import(file: pathlib.Path, cluster: Cluster) -> tuple[str, bool]:
    """(what it said, whether it refused)."""
    out = io.StringIO()
    try:
        call_command("pools", "import", str(file), "--cluster", cluster.name, stdout=out)
    except CommandError as error:
        return f"{out.getvalue()}\n{error}", True
    return out.getvalue(), False


@pytest.mark.sample(24)
@pytest.mark.parametrize("case", catalogue.params(door="command", kinds=tuple(FILES)))
def test_an_imported_file(case: catalogue.Case, tmp_path: pathlib.Path) -> None:
    cluster = factories.cluster()
    before = _rows()
    file = tmp_path / "pools.yaml"
    file.write_bytes(FILES[case.kind](case))
    output, refused = _import(file, cluster)
    if "code" in case.expect:
        assert refused
        assert _rows() == before
        assert case.expect["code"] in output
        assert case.expect.get("says", "") in output
        return
    assert not refused, output
    expected = case.expect["normalised"]
    got: dict[str, Any] = {
        "cidr": lambda: str(PoolCIDR.objects.get()),
        "range": lambda: str(ReservedRange.objects.get()),
        "mask_size": lambda: Pool.objects.get().mask_size(PoolCIDR.objects.get().cidr.version),
        "document": lambda: list(Pool.objects.order_by("pk").values_list("name", flat=True)),
    }
    assert got[case.kind]() == expected


PREFIXES = [
    param
    for param in catalogue.params(door="command", kinds=("cidr",))
    if "code" in param.values[0].expect
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", PREFIXES)
def test_a_cluster_prefix(case: catalogue.Case) -> None:
    with pytest.raises(CommandError, match=case.expect["code"]):
        call_command("cluster", "add", "prod", f"--prefix={case.value}")
    assert not Cluster.objects.exists()
