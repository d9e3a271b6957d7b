"""Whatever is given, a parser answers or raises InvalidInput, and its report can be sent on."""

import json
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from pools.core import addresses, blocks, errors, holders
from pools.core.cilium import podippool
from pools.platform import documents
from tests import effort

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

# Surrogates and NUL are possible in Python, so they are given too.
ANY_TEXT = st.text(st.characters(exclude_categories=()))
ADDRESS_LIKE = st.text("0123456789abcdefABCDEFx.:/-% \t\n\u00a0\u200b\u0661\u2013", max_size=45)
FIELDS = st.sampled_from(
    [
        *("apiVersion", "kind", "metadata", "name", "labels", "items", "spec", "ipv4", "ipv6"),
        *("cidrs", "cidr", "maskSize", "pool", "reservedRange", "reservedRanges", "start", "end"),
        *("podSelector", "ipam", "operator", podippool.HELM_VALUE),
    ]
)
WORDS = st.sampled_from(
    ["cilium.io/v2", "CiliumPodIPPool", "List", "10.0.0.0/8", "fd00::/64", "10.0.0.0-10.0.0.9", "a"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT, WORDS)
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(FIELDS | ANY_TEXT, inner, max_size=5)
    ),
    max_leaves=25,
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


@hypothesis.given(value=st.dictionaries(FIELDS, JSON_LIKE))
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
