"""Whatever a cluster answers, its readers return or raise InvalidInput, and never anything else."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pools.core import errors
from pools.core.cilium import ciliumnode, configuration, conversion, multipool
from pools.core.cilium.podippool import Shape
from pools.core.kubernetes import differences, label_selector

WORDS = """
kind apiVersion metadata name uid annotations managedFields fieldsV1 f:spec k:{} v:1 .
spec ipam pools requested allocated pool cidrs needed ipv4-addrs ipv4 maskSize cidr
status operator-status error matchLabels matchExpressions key operator values
properties items type
"""
KEYS = st.sampled_from(WORDS.split())
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["CiliumPodIPPool", "CiliumNode", "cilium.io/v2alpha1", "a", "10.0.0.0/16"]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=25,
)
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
READERS: list[Callable[[Any], object]] = [
    ciliumnode.parse,
    conversion.shape_of,
    conversion.check_written_shape,
    label_selector.parse,
    multipool.parse_pre_allocation,
    configuration.parse,
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("read", READERS, ids=lambda read: f"{read.__module__}.{read.__name__}")
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
@given(st.dictionaries(KEYS, JSON), st.dictionaries(KEYS, JSON))
def test_differences(desired: Any, observed: Any) -> None:
    differences.find_differences(desired, observed, manager="a")
    assert differences.find_differences(desired, desired) == []
