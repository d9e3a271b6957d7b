"""No body gives a 5xx or a half import: files, forms, rows, mappings, corrections."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import HealthCheck, given, settings, strategies as st

from claims.imports import drafts as import_drafts
from claims.models import Entry, Network, VMImport, VMRow
from tests.claims import worlds
from tests.claims.imports import corpus, drafts
from tests.claims.imports.drafts import mac, row
from tests.claims.worlds import BY
from tests.edges import api as apis

PLACE = f"{apis.ROOT}imports/"
GOOD = f"vm,mac,ip\nweb-01,{mac(1)},10.0.0.11\n".encode()


def upload(api: apis.Api, content: bytes, **values: Any) -> Any:
    return api.client.post(PLACE, {"file": SimpleUploadedFile("x.csv", content), **values})


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"\x00" * 100, 400),
        (b"\xff\xfe\x00", 400),
        (b"PK\x03\x04 no archive", 400),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, 400),
        (corpus.to_zip({"a.csv": b"0" * 60_000_000}), 400),
        (corpus.to_zip({"x/../../a.txt": b"x"}), 400),
        (b"%PDF-1.7", 400),
        (b'{"a": ' * 100_000, 400),
        (b"&a [*a]", 400),
        (b'vm,mac,ip\n"' + b"x" * 200_000, 400),
        (b"vm,vm,vm\n1,2,3\n", 400),
        (b"x" * (21 * 1024 * 1024), 413),
    ],
)
def test_files_that_are_none(network: Network, api: apis.Api, content: bytes, status: int) -> None:
    answer = upload(api, content, network=network.pk)
    assert answer.status_code == status, answer.content
    assert answer.json()["code"]
    assert not VMImport.objects.exists()


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "required"),
        ({"network": "x"}, "wrong_type"),
        ({"network": "0"}, "unknown_network"),
        ({"network": "9" * 17}, "unknown_network"),
        ({"network": "-1"}, "wrong_type"),
        ({"mapping": "{"}, "json_syntax"),
        ({"mapping": "[]"}, "wrong_type"),
        ({"mapping": '{"a": 999999999}', "cluster": "prod"}, "unknown_network"),
        ({"mapping": '{"a": {"network": [1]}}', "cluster": "prod"}, "unknown_network"),
        ({"mapping": '{"a": {"network": true}}', "cluster": "prod"}, "unknown_network"),
        ({"mapping": '{"a": {"network": 999999999}}'}, "unknown_network"),
        ({"mapping": '{"a": {"net": 99}}', "cluster": "prod"}, "wrong_type"),
        ({"mapping": '{"a": {"namespace": "A B"}}', "cluster": "prod"}, "k8s_name"),
        ({"cluster": "nowhere"}, "unknown_cluster"),
        ({"cluster": "prod", "target": "x"}, "invalid_choice"),
        ({"cluster": "prod", "namespace": "A B"}, "k8s_name"),
        ({"cluster": "prod", "commit": "perhaps"}, "invalid_choice"),
        ({"cluster": "prod", "colour": "red"}, "unknown_field"),
        ({"cluster": ["prod", "prod"]}, "repeated"),
    ],
)
def test_forms_that_are_none(
    network: Network, api: apis.Api, values: dict[str, Any], code: str
) -> None:
    apis.refused(upload(api, GOOD, **values), 400, code)
    assert not VMImport.objects.exists()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"rows": []}, "required"),
        ({"rows": {}}, "wrong_type"),
        ({"rows": [], "text": "x"}, "required"),
        ({"text": 1}, "wrong_type"),
        ("[]", "object_expected"),
        ('{"rows": [], "rows": []}', "duplicate_key"),
        ('{"rows": ' + "[" * 100_000, "too_deep"),
    ],
)
def test_bodies_that_are_none(network: Network, api: apis.Api, body: Any, code: str) -> None:
    apis.refused(api("POST", "imports/", body), 400, code)


def test_one_file_is_sent_or_its_text(network: Network, api: apis.Api) -> None:
    files = [SimpleUploadedFile(f"{name}.csv", GOOD) for name in "ab"]
    answer = api.client.post(PLACE, {"file": files, "network": network.pk})
    apis.refused(answer, 400, "repeated")
    both = {"file": SimpleUploadedFile("a.csv", GOOD), "text": GOOD.decode()}
    apis.refused(api.client.post(PLACE, {**both, "network": network.pk}), 400, "required")
    apis.refused(api.client.post(PLACE, {"network": network.pk}), 400, "required")
    assert not VMImport.objects.exists()
    answer = api.client.post(PLACE, {"text": GOOD.decode(), "network": network.pk})
    assert (answer.status_code, answer.json()["counts"]["new"]) == (201, 1), answer.content


def test_other_media_types(network: Network, api: apis.Api) -> None:
    answer = api.client.post(PLACE, "x", content_type="text/xml")
    apis.refused(answer, 415, "unsupported_media_type")
    answer = api.client.post(PLACE, b"x", content_type="multipart/form-data")
    assert answer.status_code == 400


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"mac": 1}, "wrong_type"),
        ({"ips": "10.0.0.5"}, "wrong_type"),
        ({"ips": [1]}, "wrong_type"),
        ({"ips": ["10.0.0.5"] * 40}, "wrong_type"),
        ({"vm": "x" * 600}, "too_long"),
        ({"status": "new"}, "unknown_field"),
        ({"skip": "yes"}, "wrong_type"),
        ({"free_address": False}, "conflicting_fields"),
        ({"vm": None}, "wrong_type"),
    ],
)
def test_corrections_that_are_none(
    network: Network, api: apis.Api, body: dict[str, Any], code: str
) -> None:
    of = drafts.draft(network, row("a", mac(1), "10.0.0.5"))
    apis.refused(api("PATCH", f"imports/{of.pk}/rows/1/", body), 400, code)


def test_a_network_without_room_or_subnets(network: Network, api: apis.Api) -> None:
    tiny = worlds.network("tiny", subnets=("10.9.0.0/30",))
    of = drafts.draft(tiny, row("a", mac(1), "10.9.0.2"), row("b", mac(2)))
    answer = api("PATCH", f"imports/{of.pk}/rows/2/", {"free_address": True})
    apis.refused(answer, 409, "ipam_exhausted")
    bare = Network.objects.create(cluster=network.cluster, name="bare")
    of = drafts.draft(bare, row("a", mac(1), "10.9.0.2/24"), row("b", mac(2)))
    assert drafts.statuses(of)[1] == ("new", set())
    apis.refused(api("PATCH", f"imports/{of.pk}/rows/2/", {"free_address": True}), 409, "conflict")


_words = st.one_of(
    st.text(max_size=30),
    st.sampled_from([mac(1), mac(2), "10.0.0.5", "10.0.0.6/24", "fd00::1", "web", "=1+1", "\x00"]),
)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=8,
)
_row = st.fixed_dictionaries(
    {}, optional={"vm": _words, "mac": _words, "ips": st.lists(_words, max_size=4) | _words,
                  "namespace": _words, "network": _words, "note": _words},
)  # fmt: skip

# By chance alone hardly any row would be written, and none undone.
_good = st.fixed_dictionaries(
    {
        "vm": st.sampled_from(["web", "db"]),
        "mac": st.sampled_from([mac(1), mac(2)]),
        "ips": st.sampled_from(["10.0.0.5", "10.0.0.6/24"]).map(lambda ip: [ip]),
    },
    optional={"namespace": _words, "note": _words},
)


@pytest.mark.exhaustive
@settings(
    deadline=None,
    max_examples=min(100, settings.default.max_examples),  # four requests each
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(_good | _row | _json, max_size=6), st.sampled_from(["ippool", "ipamclaims"]))
def test_whatever_rows_come(network: Network, rows: list[Any], target: str) -> None:
    api = _API.setdefault(network.pk, apis.Api("operator"))
    body = {"rows": rows, "network": network.pk, "target": target, "namespace": "shop"}
    body |= {"commit": True, "skip_bad": True}
    before = Entry.objects.count()
    answer = api("POST", "imports/", json.dumps(body))
    assert answer.status_code in {201, 400}, answer.content
    if answer.status_code == 400:
        assert Entry.objects.count() == before
        return
    created = answer.json()
    assert created["status"] == "committed"
    listed = api("GET", f"imports/{created['id']}/rows/?limit=1000")
    assert listed.status_code == 200
    written = VMRow.objects.filter(source_import=created["id"], written=True).count()
    assert written == created["counts"]["new"] + created["counts"]["changed"]
    import_drafts.IMPORTS.undo(created["id"], author=BY)
    assert Entry.objects.count() == before


_API: dict[int, apis.Api] = {}


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))  # fmt: skip
def test_whatever_bytes_come(network: Network, content: bytes) -> None:
    api = _API.setdefault(network.pk, apis.Api("operator"))
    answer = upload(api, content, network=network.pk, commit="true")
    assert answer.status_code in {201, 400}, answer.content
