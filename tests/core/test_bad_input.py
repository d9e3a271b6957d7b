"""What nobody should send: bad input is refused, and arbitrary values and manifests raise nothing else."""

import contextlib
import ipaddress
import json
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import given, strategies as st

from pools.core import addresses, blocks, errors, holders
from pools.core.cilium import ciliumnode, configuration, conversion, multipool, podippool
from pools.core.cilium.podippool import Shape
from pools.core.kubernetes import differences, label_selector
from pools.platform import documents
from tests import effort
from tests.core import catalogue
from tests.core.any_json import ANY_TEXT, any_json
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


# --- Whatever a cluster answers, its readers return or raise InvalidInput, and never anything else
MANIFEST_WORDS = """
kind apiVersion metadata name uid annotations managedFields fieldsV1 f:spec k:{} v:1 .
spec ipam pools requested allocated pool cidrs needed ipv4-addrs ipv4 maskSize cidr
status operator-status error matchLabels matchExpressions key operator values
properties items type
"""
JSON = any_json(
    MANIFEST_WORDS,
    st.sampled_from(["CiliumPodIPPool", "CiliumNode", "cilium.io/v2alpha1", "a", "10.0.0.0/16"]),
)
OBJECT = st.dictionaries(st.sampled_from(MANIFEST_WORDS.split()), JSON)
POOL = st.fixed_dictionaries(
    {
        "apiVersion": st.just("cilium.io/v2alpha1"),
        "kind": st.just("CiliumPodIPPool"),
        "metadata": st.one_of(st.just({"name": "a"}), JSON),
        "spec": st.one_of(st.fixed_dictionaries({"ipv4": JSON}), JSON),
    }
)
NODE = st.fixed_dictionaries(
    {"metadata": st.just({"name": "a"}), "spec": st.fixed_dictionaries({"ipam": JSON})}
)
MANIFEST_READERS: list[Callable[[Any], object]] = [
    ciliumnode.parse,
    conversion.shape_of,
    conversion.check_written_shape,
    label_selector.parse,
    multipool.parse_pre_allocation,
    configuration.parse,
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "read", MANIFEST_READERS, ids=lambda read: f"{read.__module__}.{read.__name__}"
)
@given(value=st.one_of(JSON, POOL, NODE, st.text()))
def test_readers(read: Callable[[Any], object], value: Any) -> None:
    with contextlib.suppress(errors.InvalidInput):
        read(value)


@given(POOL)
def test_conversion(manifest: Any) -> None:
    try:
        new = conversion.convert(manifest, Shape.V2)
    except errors.InvalidInput:
        return
    assert conversion.differences(manifest, new) == []


@given(NODE)
def test_writing_back_what_was_read(manifest: Any) -> None:
    try:
        node = ciliumnode.parse(manifest)
    except errors.InvalidInput:
        return
    written = ciliumnode.set_allocated(manifest, node.held_cidrs())
    again = ciliumnode.parse(written).held_cidrs()
    assert {name: set(cidrs) for name, cidrs in again.items()} == {
        name: set(cidrs) for name, cidrs in node.held_cidrs().items() if cidrs
    }


@pytest.mark.exhaustive
@given(OBJECT, OBJECT)
def test_differences(desired: Any, observed: Any) -> None:
    differences.find_differences(desired, observed, manager="a")
    assert differences.find_differences(desired, desired) == []


# --- Whatever is given, a parser answers or raises InvalidInput, and its report can be sent on ----
TEXT = addresses.InputSource.TEXT
PARSERS: dict[str, Callable[[Any], object]] = {
    "address": addresses.parse_address,
    "address-text": lambda value: addresses.parse_address(value, source=TEXT),
    "cidr": addresses.parse_cidr,
    "cidr-text": lambda value: addresses.parse_cidr(value, source=TEXT),
    "cidr-short": lambda value: addresses.parse_cidr(value, allow_short=True),
    "range": addresses.parse_range,
    "range-text": lambda value: addresses.parse_range(value, source=TEXT),
    "mask-size": lambda value: blocks.check_mask_size(value, 4),
    "name": holders.parse_name,
    "label": lambda value: holders.parse_name(value, kind="label"),
    "identifier": holders.parse_identifier,
    "reason": holders.parse_reason,
    "cooldown": holders.parse_cooldown,
    "document": podippool.parse_document,
    "document-lenient": lambda value: podippool.parse_document(value, strict=False),
}
TEXT_PARSERS: dict[str, Callable[[Any], object]] = {
    "yaml": documents.load_yaml,
    "json": documents.load_json,
}

ADDRESS_LIKE = st.text("0123456789abcdefABCDEFx.:/-% \t\n\u00a0\u200b\u0661\u2013", max_size=45)
FIELDS = f"""
apiVersion kind metadata name labels items spec ipv4 ipv6 cidrs cidr maskSize pool
reservedRange reservedRanges start end podSelector ipam operator {podippool.HELM_VALUE}
"""
JSON_LIKE = any_json(
    FIELDS,
    st.sampled_from(
        [
            "cilium.io/v2",
            "CiliumPodIPPool",
            "List",
            "10.0.0.0/8",
            "fd00::/64",
            "10.0.0.0-10.0.0.9",
            "a",
        ]
    ),
)


def _refusal(parser: Callable[[Any], object], value: object) -> errors.InvalidInput | None:
    try:
        parser(value)
    except errors.InvalidInput as error:
        return error
    return None


def _survives(parser: Callable[[Any], object], value: object) -> None:
    error = _refusal(parser, value)
    if error is None:
        return
    codes = {problem.code for problem in error.problems}
    assert {error.code} == codes or (error.code == "invalid" and len(codes) > 1)
    for problem in error.problems:
        assert (problem.message + problem.value).encode()


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", PARSERS)
@hypothesis.given(value=ADDRESS_LIKE | JSON_LIKE | st.binary())
def test_only_invalid_input_is_raised(name: str, value: object) -> None:
    _survives(PARSERS[name], value)


@hypothesis.given(value=st.dictionaries(st.sampled_from(FIELDS.split()), JSON_LIKE))
def test_only_invalid_input_is_raised_by_manifests(value: dict[str, Any]) -> None:
    _survives(podippool.parse_document, {**value})
    pool = {"apiVersion": "cilium.io/v2", "kind": "CiliumPodIPPool", "metadata": {"name": "a"}}
    _survives(podippool.parse_document, {**pool, "spec": value})
    _survives(podippool.parse_document, {**pool, "spec": {"ipv4": value, "ipv6": value}})
    _survives(podippool.parse_document, {"a": {"ipv4": {"cidrs": [value], "pool": [value]}}})


@pytest.mark.parametrize("name", TEXT_PARSERS)
@hypothesis.given(
    text=ANY_TEXT | st.text("{}[]\"':,-?&*!|>%@`\n\t #aé0\\\x00<", max_size=60) | st.binary()
)
def test_only_invalid_input_is_raised_by_texts(name: str, text: str | bytes) -> None:
    _survives(TEXT_PARSERS[name], text)


@pytest.mark.exhaustive
@hypothesis.given(value=st.dictionaries(st.text("abc1.~", min_size=1), JSON_LIKE))
def test_json_that_python_writes_is_read_back_or_refused(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    if error := _refusal(documents.load_json, text):
        codes = {problem.code for problem in error.problems}
        assert codes <= {"not_finite", "encoding", "bad_number"}
    else:
        assert documents.load_json(text) == json.loads(text)


HUGE: dict[str, Any] = {
    "text": "1" * 10_000_000,
    "blanks": " " * 10_000_000,
    "digits-and-dots": "1." * 5_000_000,
    "colons": ":" * 10_000_000,
    "integer": 10**20_000,
    "list": [0] * 1_000_000,
    "bytes": b"1" * 10_000_000,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("value", HUGE)
def test_huge_values_are_refused_at_once(parser: str, value: str) -> None:
    with effort.at_most(500), pytest.raises(errors.InvalidInput):
        PARSERS[parser](HUGE[value])


@pytest.mark.sample(5)
@pytest.mark.parametrize("parser", PARSERS)
def test_deep_values_are_refused_without_a_crash(parser: str) -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    for item in (value, {"spec": value}, {"kind": "List", "items": value}):
        with pytest.raises(errors.InvalidInput):
            PARSERS[parser](item)
