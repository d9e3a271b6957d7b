"""Many entries: the map of an IPPool, lists, and texts whose keys are there twice."""

import json

import pytest

from claims.core import entries, ippool
from pools.core import errors
from pools.platform import documents

MAC, OTHER = "00:1a:4b:12:34:56", "00:1a:4b:12:34:57"
UNKNOWN = entries.Rules()

CONFLICTS = """\
apiVersion: ippool.k8s.cni.cncf.io/v1alpha
kind: IPPool
metadata:
  name: example-ip-pool
spec:
  network-name: "prod-network"
  entries:
    "00:1a:4b:12:34:56": ["10.0.0.2/24", "10.0.1.10/24"]
    "00:1a:4b:12:34:56": ["10.0.0.14/24", "10.0.1.110/24"]
"""
CORRECT = """\
apiVersion: ippool.k8s.cni.cncf.io/v1alpha
kind: IPPool
metadata:
  name: example-ip-pool
spec:
  network-name: "prod-network"
  entries:
    "00:1a:4b:12:34:56": ["10.0.0.0/24", "10.0.1.0/24"]
"""


def written(text: str) -> ippool.ParsedIPPool:
    (document,) = documents.load_yaml(text, repeatable=[ippool.ENTRIES])
    return ippool.parse_strict(document.data)


def test_the_conflict_of_the_spec_keeps_both_entries() -> None:
    parsed_ippool = written(CONFLICTS)
    result, problems = ippool.parse_entries(parsed_ippool.entries, UNKNOWN)
    assert (parsed_ippool.name, parsed_ippool.network_name) == ("example-ip-pool", "prod-network")
    assert result == [
        entries.EntrySpec(MAC, ("10.0.0.2/24", "10.0.1.10/24")),
        entries.EntrySpec(MAC, ("10.0.0.14/24", "10.0.1.110/24")),
    ]
    assert problems == []
    assert ippool.repeated_macs(parsed_ippool.entries) == [MAC]


def test_the_success_of_the_spec_has_network_addresses() -> None:
    result, problems = ippool.parse_entries(written(CORRECT).entries, UNKNOWN)
    assert result == []
    assert [(problem["mac"], problem["code"]) for problem in problems] == [
        (MAC, "network_address_not_host")
    ]


def test_json_keeps_all_occurrences() -> None:
    text = '{"entries": {"a": [1], "a": [2], "b": [3], "a": []}}'
    read = documents.load_json(text, repeatable=[("entries",)])
    assert list(entries.pairs(read["entries"])) == [("a", [1]), ("a", [2]), ("a", []), ("b", [3])]


@pytest.mark.parametrize("repeatable", [(), [("spec",)], [("spec", "entries", MAC)]])
def test_elsewhere_a_key_is_there_once(repeatable: list[documents.Path]) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        documents.load_yaml(CONFLICTS, repeatable=repeatable)
    (problem,) = refused.value.problems
    assert (problem.code, problem.field) == ("duplicate_key", f"spec.entries.{MAC}")
    assert "line 9" in problem.message


def test_flaws_below_repeated_keys_are_found() -> None:
    text = '{"entries": {"a": [1], "a": [{"x": 1, "x": 2}, 1e999]}}'
    with pytest.raises(errors.InvalidInput) as refused:
        documents.load_json(text, repeatable=[("entries",)])
    assert [problem.code for problem in refused.value.problems] == ["duplicate_key", "not_finite"]


def test_a_key_many_times_is_read_at_once() -> None:
    text = '{"entries": {' + ",".join(['"a":1'] * 200_000) + "}}"
    read = documents.load_json(text, repeatable=[("entries",)])
    assert len(read["entries"]["a"]) == 200_000


def test_the_map_and_the_list() -> None:
    entry_specs = entries.parse_map({MAC: ["10.0.0.5/24"], OTHER: ["10.0.0.6/24"]}, UNKNOWN)
    assert [entry_spec.mac for entry_spec in entry_specs] == [MAC, OTHER]
    assert entry_specs[0].vm is None  # a map cannot say it
    listed = entries.parse_list([{"mac": MAC, "ips": ["10.0.0.5/24"]}], UNKNOWN)
    assert listed == [entries.EntrySpec(MAC, ("10.0.0.5/24",), "", "", "")]


def test_problems_name_their_entry() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_map({"x": ["10.0.0.5/24"], OTHER: "10.0.0.5/24"}, UNKNOWN)
    assert [(p.field, p.code) for p in refused.value.problems] == [
        ("entries.x", "mac_syntax"),
        (f"entries.{OTHER}", "wrong_type"),
    ]
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_list([{"mac": MAC, "ips": ["10.0.0.5"]}], UNKNOWN)
    assert [p.field for p in refused.value.problems] == ["entries.0.ips.0"]


def test_of_many_problems_the_first_are_told() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        entries.parse_list([1] * 5000, UNKNOWN)
    assert len(refused.value.problems) == 101
    assert refused.value.problems[-1].message == "and 4900 more"


def test_a_bare_mac_of_digits_in_yaml() -> None:
    """YAML 1.1 makes a number of it; keys are texts here, and values say what to do."""
    (document,) = documents.load_yaml("spec:\n  entries:\n    02:22:33:44:55:06: [10.0.0.5/24]\n")
    (result,) = entries.parse_map(document.data["spec"]["entries"], UNKNOWN)
    assert result.mac == "02:22:33:44:55:06"
    assert json.dumps(result.ips) == '["10.0.0.5/24"]'
