"""imports/ over REST and its pages: a draft, its rows, a correction, commit and undo."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pools.models import Block, Pool
from tests import people
from tests.edges import api as apis

pytestmark = pytest.mark.django_db

PREFIXES = b"prefix,status,description\n10.80.0.0/24,active,office\n10.80.1.1/24,active,\n"
ADDRESSES = b"address,dns_name,tenant\n10.80.0.5/24,web.example,Acme\n"


def test_from_the_file_to_the_undo() -> None:
    api = apis.Api()
    api.cluster()
    files = [SimpleUploadedFile("p.csv", PREFIXES), SimpleUploadedFile("a.csv", ADDRESSES)]
    answer = api.client.post(
        f"{apis.ROOT}imports/", {"kind": "register", "cluster": "prod", "file": files}
    )
    assert answer.status_code == 201, answer.content
    pk = answer.json()["id"]
    assert answer.json()["counts"] | {"new": 2, "invalid": 1} == answer.json()["counts"]
    assert [result["id"] for result in api("GET", "imports/").json()["results"]] == [pk]
    bad = api("GET", f"imports/{pk}/rows/?status=invalid").json()["results"]
    assert [(row["line"], row["reasons"][0]["code"]) for row in bad] == [(3, "host_bits_set")]
    assert api("POST", f"imports/{pk}/commit/", {}).status_code == 409
    row = f"imports/{pk}/rows/{bad[0]['number']}/"
    assert api("PATCH", row, {"prefix": "10.80.1.0/24"}).json()["status"] == "new"
    committed = api("POST", f"imports/{pk}/commit/", {}).json()
    assert (committed["status"], committed["counts"]["new"]) == ("committed", 3)
    assert Pool.objects.filter(name__startswith="10.80.").count() == 2
    assert api("POST", f"imports/{pk}/undo/", {}).json()["status"] == "undone"
    assert not Pool.objects.filter(name__startswith="10.80.").exists()


def test_a_block_shows_what_the_import_says_about_its_holder() -> None:
    api = apis.Api()
    api.cluster()
    prefixes = "prefix\n10.80.0.0/24\n"
    addresses = (
        "ip address,hostname,mac,note\n10.80.0.5,web.example,00:11:22:33:44:55,<b>shop</b>\n"
    )
    for text in (prefixes, addresses):
        body = {"kind": "register", "cluster": "prod", "text": text, "commit": True}
        api("POST", "imports/", body)
    block = Block.objects.get(cidr="10.80.0.5/32")
    details = {
        "dns_name": "web.example",
        "mac": "00:11:22:33:44:55",
        "note": "<b>shop</b>",
    }
    imported = {"description": "<b>shop</b>", "details": details}
    assert api("GET", f"blocks/{block.pk}/").json()["imported"] == imported
    page = people.browser().get(f"/admin/pools/block/{block.pk}/change/")
    assert b"From the imported register" in page.content
    assert b"00:11:22:33:44:55" in page.content
    assert b"&lt;b&gt;shop&lt;/b&gt;" in page.content
    holder = {"kind": "host", "id": "web.example"}
    api("POST", f"blocks/{block.pk}/release/", {"holder": holder})
    assert "imported" not in api("GET", f"blocks/{block.pk}/").json()


def test_bad_input_has_a_code() -> None:
    api = apis.Api()
    api.cluster()
    for body, code in (
        ({"cluster": "prod", "text": "nothing here\n"}, "header"),
        ({"cluster": "none", "text": "prefix\n10.0.0.0/24\n"}, "unknown_cluster"),
        ({"cluster": "prod", "text": "prefix\n", "mapping": {"vlan": {}}}, "wrong_type"),
    ):
        answer = api("POST", "imports/", {"kind": "register", **body})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, code)
