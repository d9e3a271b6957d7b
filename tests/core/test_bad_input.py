"""The bad-input catalogue against the core's parsers; other tests run it through the doors."""

import ipaddress
from collections.abc import Callable
from typing import Any

import pytest

from pools.core import addresses, blocks, errors, holders
from pools.core.cilium import podippool
from pools.platform import documents
from tests import effort
from tests.core import catalogue
from tests.docs import pages, rules

CASES = [
    pytest.param(case, door, id=f"{case.id}-{door}")
    for case in catalogue.rows()
    for door in case.doors
]


def _address(case: catalogue.Case, door: addresses.InputSource) -> str:
    return str(addresses.parse_address(case.value, field="f", source=door))


def _cidr(case: catalogue.Case, door: addresses.InputSource) -> str:
    return str(addresses.parse_cidr(case.value, field="f", source=door))


def _range(case: catalogue.Case, door: addresses.InputSource) -> str:
    span = addresses.parse_range(case.value, field="f", source=door)
    if case.within is not None:
        addresses.require_within(span, ipaddress.ip_network(case.within), field="f")
    return str(span)


def _mask_size(case: catalogue.Case, door: addresses.InputSource) -> int:
    parent = (
        case.within if isinstance(case.within, int) else ipaddress.ip_network(case.within or "")
    )
    return blocks.check_mask_size(case.value, parent, field="f")


def _pool_names(case: catalogue.Case, door: addresses.InputSource) -> list[str]:
    if case.format == "json":
        loaded = [documents.load_json(case.value)]
    else:
        loaded = [document.data for document in documents.load_yaml(case.value)]
    return [pool.name for data in loaded for pool in podippool.parse_document(data)]


# The door matters to the parsers of addresses only.
READERS: dict[str, Callable[[catalogue.Case, addresses.InputSource], Any]] = {
    "address": _address,
    "cidr": _cidr,
    "range": _range,
    "mask_size": _mask_size,
    "document": _pool_names,
    "name": lambda case, _: holders.parse_name(case.value, field="f"),
    "identifier": lambda case, _: holders.parse_identifier(case.value, field="f"),
    "reason": lambda case, _: holders.parse_reason(case.value, field="f"),
    "cooldown": lambda case, _: holders.parse_cooldown(case.value, field="f"),
}


@pytest.mark.sample(15)
@pytest.mark.parametrize(("case", "door"), CASES)
def test_catalogue(case: catalogue.Case, door: str) -> None:
    how = addresses.InputSource.API if door in {"api", "core"} else addresses.InputSource.TEXT
    if "code" not in case.expect:
        assert READERS[case.kind](case, how) == case.expect["normalised"]
        return
    with effort.at_most(100), pytest.raises(errors.InvalidInput) as caught:
        READERS[case.kind](case, how)
    assert caught.value.problems[0].code == case.expect["code"]
    assert case.expect.get("says", "") in caught.value.message


def test_ids_are_unique() -> None:
    ids = [case.id for case in catalogue.rows()]
    assert len(ids) == len(set(ids))


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    """A rule that docs/rules.md proves by `test_catalogue` has cases here; a case is of such a rule."""
    page = (pages.ROOT / rules.PAGE).read_text()
    proved = {
        rule.name
        for rule in rules.read_rules(page).values()
        if "tests/core/test_bad_input.py::test_catalogue" in rule.tests
    }
    assert {case.id.split("/")[0] for case in catalogue.rows()} == proved
