"""JSON and YAML files: the inventory, IPPools, IPAMClaims, rows; and what is refused (3c)."""

from __future__ import annotations

import json

import pytest

from claims.imports import formats
from tests.claims.imports import corpus

VM = corpus.vsphere_vm
POOL = corpus.ippool(f'"{corpus.mac(1)}": [10.0.0.1/24]\n"{corpus.mac(2)}": [10.0.0.2/24]')
ROWS = [{"vm": "a", "mac": corpus.mac(1), "ips": ["10.0.0.1/24"]}]

FILES = {
    "one VM": (corpus.to_json(VM(1)), "forklift", 1),
    "a list": (corpus.to_json([VM(1), VM(2)]), "forklift", 2),
    "vms": (corpus.to_json({"vms": [VM(1), VM(2)]}), "forklift", 2),
    "with a mark": (b"\xef\xbb\xbf" + corpus.to_json([VM(1)]), "forklift", 1),
    "UTF-16": (json.dumps([VM(1)]).encode("utf-16"), "forklift", 1),
    "IPPool": (POOL.encode(), "ippool-yaml", 2),
    "comment first": (f"# ours\n---\n{POOL}".encode(), "ippool-yaml", 2),
    "several": (f"{POOL}---\n{POOL}".encode(), "ippool-yaml", 4),
    "IPAMClaim": (corpus.to_json(corpus.ipamclaim()), "ipamclaim-yaml", 1),
    "List": (
        corpus.to_json(
            {"kind": "List", "items": [corpus.ipamclaim("a.x"), corpus.ipamclaim("b.x")]}
        ),
        "ipamclaim-yaml",
        2,
    ),
    "rows": (corpus.to_json({"rows": ROWS}), "rows", 1),
    "bare rows": (corpus.to_json(ROWS), "rows", 1),
}


@pytest.mark.parametrize("case", FILES)
def test_documents_are_told_by_their_content(case: str) -> None:
    content, name, count = FILES[case]
    reading = formats.open_file("x.csv", content)
    assert (reading.format, len(list(reading.rows()))) == (name, count)


def test_keys_that_are_there_twice_are_kept_and_shown() -> None:
    text = corpus.ippool(f'"{corpus.mac(1)}": [10.0.0.1/24]\n"{corpus.mac(1)}": [10.0.0.2/24]')
    pool = json.dumps({"kind": "IPPool", "metadata": {"name": "p"}})[:-1]
    pool += f', "spec": {{"network-name": "n", "entries": {{"{corpus.mac(1)}": ["10.0.0.1/24"],'
    pool += f' "{corpus.mac(1)}": ["10.0.0.2/24"]}}}}}}'
    listed = f'{{"kind": "List", "items": [{pool}]}}'
    for content in (text, pool, listed):
        result = list(corpus.from_text(content).rows())
        assert [item.ips for item in result] == [("10.0.0.1/24",), ("10.0.0.2/24",)]
        assert {problem.code for item in result for problem in item.problems} == {"duplicate_key"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"vms": [], "vms": []}', "duplicate_key"),
        ("{", "json_syntax"),
        ("[" * 40 + "]" * 40, "too_deep"),
        ("[" * 100_000, "too_deep"),
        ("[]", "unsupported_document"),
        ("{}", "unsupported_document"),
        ("[1, 2]", "unsupported_document"),
        ('{"vms": 1}', "wrong_type"),
        ('{"rows": null}', "wrong_type"),
        ('{"name": "\\ud800", "nics": []}', "encoding"),
        ('{"name": NaN, "nics": []}', "not_finite"),
        ("kind: Pod\n", "unsupported_document"),
        ("kind: Plan\nspec: {vms: [{name: web}]}\n", "unsupported_document"),
        ("kind: [", "yaml_syntax"),
        ("kind: &a IPPool\nspec: *a\n", "anchors_not_allowed"),
        ("kind: !!python/object:os.system x\n", "tags_not_allowed"),
    ],
)
def test_what_is_no_usable_document_is_refused(content: str, code: str) -> None:
    assert corpus.refused(content.encode()) == code


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        ({"vm": "a", "mac": corpus.mac(1), "ips": ["10.0.0.1/24", "172.17.0.1"]}, []),
        ({"vm": "a", "mac": corpus.mac(1), "ips": "10.0.0.1/24"}, []),
        ({"vm": "a", "mac": corpus.mac(1)}, ["no_address"]),
        ({"vm": "a", "ips": ["10.0.0.1"]}, ["mac_missing"]),
        ({"vm": 1, "mac": corpus.mac(1), "ips": ["10.0.0.1"]}, ["wrong_type"]),
        ({"mac": 12345, "ips": ["10.0.0.1"]}, ["wrong_type", "mac_missing"]),
        ({"mac": corpus.mac(1), "ips": [1]}, ["wrong_type", "no_address"]),
        ({"mac": corpus.mac(1), "ips": ["10.0.0.1"], "id": 1}, ["unknown_field"]),
        ({"mac": corpus.mac(1), "ips": ["010.0.0.1"]}, ["leading_zero"]),
        ("text", ["wrong_type"]),
        (None, ["wrong_type"]),
    ],
)
def test_rows_of_a_program(row: object, codes: list[str]) -> None:
    (result,) = corpus.from_rows([row]).rows()
    assert [problem.code for problem in result.problems] == codes
    assert result.refused == bool(set(codes) - {"no_address"})


def test_rows_are_a_list_of_bounded_length() -> None:
    for rows, code in (({}, "wrong_type"), ([{}] * 100_001, "too_many_rows")):
        assert corpus.refused(corpus.to_json({"rows": rows})) == code
