"""Annotations that select networks and addresses, and rule `annotation-faults-are-reported`."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from claims.core.workloads import network_selection as selection
from claims.core.workloads.network_selection import DEFAULT_NETWORK, Element
from pools.core import errors

ELEMENT = Element(
    "default", "ovn-kubernetes", "02:03:04:05:06:07", ("10.0.0.5/24",), "vm-server.podnet"
)
PROPOSED_ELEMENT = """[{
  "name": "default",
  "namespace": "ovn-kubernetes",
  "mac": "02:03:04:05:06:07",
  "ipam-claim-reference": "vm-server.podnet",
  "ips": [
    "10.0.0.5/24"
  ]
}]"""


def _one(**members: Any) -> str:
    return json.dumps([{"name": "default", **members}])


def test_the_element_of_the_proposal() -> None:
    assert selection.default_network(PROPOSED_ELEMENT) == ELEMENT
    assert selection.render([ELEMENT]) == (
        '[{"name":"default","namespace":"ovn-kubernetes","mac":"02:03:04:05:06:07",'
        '"ips":["10.0.0.5/24"],"ipam-claim-reference":"vm-server.podnet"}]'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_one(mac="02-03-04-05-06-07"), Element("default", mac="02:03:04:05:06:07")),
        (_one(ips=None, mac="", namespace=""), Element("default")),
        (
            _one(ips=["fd00::0:5/64", "10.0.0.5"]),
            Element("default", ips=("fd00::5/64", "10.0.0.5")),
        ),
        (_one(interface="eth0"), Element("default", other={"interface": "eth0"})),
    ],
)
def test_what_is_read(text: str, expected: Element) -> None:
    result = selection.default_network(text)
    assert result == expected
    assert selection.default_network(selection.render([result])) == result


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("[{]", "json_syntax", ""),
        ('[{"name": "a"} 1]', "json_syntax", ""),
        ("{}", "list_expected", ""),
        ('"default"', "list_expected", ""),
        ("[]", "one_element_expected", ""),
        ('[{"name": "a"}, {"name": "b"}]', "one_element_expected", ""),
        ("[1]", "wrong_type", ".0"),
        ('[{"namespace": "a"}]', "required", ".0.name"),
        (_one(ip=["10.0.0.5/24"]), "unknown_field", ".0.ip"),
        ('[{"name": "a", "name": "b"}]', "duplicate_key", ".name"),
        (_one(ips="10.0.0.5/24"), "wrong_type", ".0.ips"),
        (_one(ips=["10.0.0.256/24"]), "not_an_address", ".0.ips.0"),
        (_one(ips=["10.0.0.5/24", "10.0.0.6/33"]), "prefix_length", ".0.ips.1"),
        (_one(mac="02:03"), "mac_syntax", ".0.mac"),
        (_one(mac=1), "wrong_type", ".0.mac"),
        ("[" * 100_000, "too_deep", ""),
        ('[{"name": NaN}]', "not_finite", ""),
        ("[" + "1" * 5000 + "]", "bad_number", ""),
        ("ovn-kubernetes/default", "short_form_has_no_ips", ""),
        ("default@eth0", "short_form_has_no_ips", ""),
        ("  ", "blank", ""),
        (None, "wrong_type", ""),
        ({"name": "a"}, "wrong_type", ""),
        (_one(cni="x" * selection.MAX_BYTES), "too_large", ""),
    ],
)
def test_what_cannot_be_understood(text: object, code: str, field: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.default_network(text)
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (code, DEFAULT_NETWORK + field)


def test_json_errors_have_a_position() -> None:
    with pytest.raises(errors.InvalidAnnotation, match="line 2, column 3"):
        selection.default_network('[\n  name: "a"]')


def test_networks_in_both_forms() -> None:
    short = selection.networks("blue/net-a@eth1, net.b,net-c@x", namespace="green")
    assert short == [
        Element("net-a", "blue", other={"interface": "eth1"}),
        Element("net.b", "green"),
        Element("net-c", "green", other={"interface": "x"}),
    ]
    listed = '[{"name": "net-a", "namespace": "blue", "interface": "eth1"}, {"name": "net.b"}]'
    assert selection.networks(listed, namespace="green") == short[:2]


@pytest.mark.parametrize("text", ["a,,b", "a/b/c", "A", "a@", "a@b@c", "a@" + "x" * 16, "a b"])
def test_a_short_form_that_is_none(text: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.networks(text)
    assert caught.value.code == "short_form"


def test_addresses_of_a_vm() -> None:
    text = '{"default": ["10.0.0.5", "fd00::0:5"], "b": []}'
    result = selection.vm_addresses(text)
    assert result == {"default": ("10.0.0.5", "fd00::5"), "b": ()}
    assert selection.render_addresses(result) == '{"b":[],"default":["10.0.0.5","fd00::5"]}'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "object_expected"),
        ('{"a": "10.0.0.5"}', "wrong_type"),
        ('{"a": ["10.0.0.5/24"]}', "not_an_address"),
        ('{"a": [null]}', "wrong_type"),
        ('{"a": [], "a": []}', "duplicate_key"),
    ],
)
def test_addresses_that_are_none(text: str, code: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.vm_addresses(text)
    assert caught.value.code == code


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(selection._KEYS), inner),
)


@pytest.mark.exhaustive
@given(st.text() | _JSON.map(json.dumps) | _JSON)
def test_nothing_else_is_raised(text: object) -> None:
    for read in (selection.networks, selection.default_network, selection.vm_addresses):
        with contextlib.suppress(errors.InvalidAnnotation):
            read(text)


def test_the_same_addresses() -> None:
    assert selection.same_addresses(["10.0.0.5/24", "fd00::5"], ["fd00:0::5/64", "10.0.0.5"])
    assert not selection.same_addresses(["10.0.0.5/24"], ["10.0.0.6/24"])
    assert selection.strip_prefix("10.0.0.5/24") == "10.0.0.5"
