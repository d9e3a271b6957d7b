"""Rows of imports of all kinds are one table: a kind names the values that its rows have in JSON."""

from ipaddress import ip_address, ip_network

import pytest

from claims.models import VMImport, VMRow
from pools.core import errors
from pools.models import ImportRow, RegisterImport, RegisterRow
from pools.platform.imports import rows
from pools.register.imports import drafts
from tests import factories
from tests.register_imports import sources


def test_each_kind_has_its_own_rows_with_its_values() -> None:
    cluster = factories.cluster()
    of_vms = VMImport.objects.create(cluster=cluster)
    of_register = RegisterImport.objects.create(cluster=cluster)
    texts = {"vm": "Web", "mac": "", "ips": ["10.0.0.5"], "port_group": "", "namespace": "", "note": ""}  # fmt: skip
    values = {"network": None, "vm": "web", "mac": None, "ips": []}
    place = RegisterRow(source_import=of_register, number=1, line=7)
    place.cidr, place.first = ip_network("10.0.0.0/24"), ip_address("10.0.0.0")
    rows.save([VMRow(source_import=of_vms, number=1, line=2, texts=texts, values=values), place])
    (vm,), (prefix,) = of_vms.rows, of_register.rows
    assert (vm.source_vm, vm.vm, vm.source_ips, vm.ips, vm.status) == ("Web", "web", ["10.0.0.5"], [], "new")  # fmt: skip
    assert (prefix.cidr, prefix.first, prefix.last) == (place.cidr, place.first, None)
    assert prefix.values == {"cidr": "10.0.0.0/24", "first": "10.0.0.0"}
    of_vms.delete()
    assert [row.line for row in ImportRow.objects.all()] == [7]


def test_an_address_follows_its_text() -> None:
    row = RegisterRow(values={"first": "10.0.0.1"})
    assert row.first == ip_address("10.0.0.1")
    row.values = {"first": "10.0.0.2"}
    assert row.first == ip_address("10.0.0.2")


def test_rows_that_are_not_there_are_not_left_out() -> None:
    draft = sources.draft(b"prefix,status\n10.0.0.0/24,active\n", cluster=factories.cluster())
    with pytest.raises(errors.NotFound):
        drafts.IMPORTS.skip_rows(draft.pk, [1, 9], skipped=True, author=sources.BY)
    assert [row.status for row in draft.rows] == ["new"]
    left = drafts.IMPORTS.skip_rows(draft.pk, [1], skipped=True, author=sources.BY)
    assert (sources.counts(left), [row.status for row in left.rows]) == ({"left_out": 1}, ["left_out"])  # fmt: skip
    back = drafts.IMPORTS.skip_rows(draft.pk, [1], skipped=False, author=sources.BY)
    assert sources.counts(back) == {"new": 1}
