"""imports/ over REST and its pages: a draft, its rows, a correction, commit and undo."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from pools.models import Block, Pool, RegisterImport
from tests import factories, people
from tests.edges import api as apis
from tests.register_imports import sources

PREFIXES = b"prefix,status,description\n10.80.0.0/24,active,office\n10.80.1.1/24,active,\n"
ADDRESSES = b"address,dns_name,tenant\n10.80.0.5/24,web.example,Acme\n"


def test_from_the_file_to_the_undo() -> None:
    api = apis.Api()
    api.cluster()
    files = [SimpleUploadedFile("p.csv", PREFIXES), SimpleUploadedFile("a.csv", ADDRESSES)]
    form = {"kind": "register", "cluster": "prod", "file": files}
    answer = api.client.post(f"{apis.ROOT}imports/", form)
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
    host = "10.80.0.5,web.example,00:11:22:33:44:55,<b>shop</b>"
    for text in ("prefix\n10.80.0.0/24\n", f"ip address,hostname,mac,note\n{host}\n"):
        body = {"kind": "register", "cluster": "prod", "text": text, "commit": True}
        api("POST", "imports/", body)
    block = Block.objects.get(cidr="10.80.0.5/32")
    details = {"dns_name": "web.example", "mac": "00:11:22:33:44:55", "note": "<b>shop</b>"}
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


def _page(row: RegisterImport) -> str:
    url = reverse("admin:pools_import_change", args=[row.pk])
    return people.browser().get(url).content.decode()


def test_rows_name_the_registered_pool_and_lead_to_what_was_written() -> None:
    cluster = factories.cluster()
    factories.pool("10.64.0.0/20", name="edge", within=cluster)
    prefixes = [
        ("10.64.0.0/20", "active", "", "", "", "of the sites"),
        ("10.70.1.0/24", "active", "", "", "", ""),
        ("10.70.300.0/24", "active", "", "", "", ""),
    ]
    draft = sources.draft(sources.table(sources.IMPORT_PREFIX, prefixes), cluster=cluster)
    page = _page(draft)
    assert ">edge<" in page
    assert "10.64.0.0-20" not in page
    assert ">10.70.1.0-24<" in page
    assert "/admin/find/?q=10.70" not in page

    sources.commit(draft, skip_bad=True)
    page = _page(draft)
    assert 'href="/admin/find/?q=10.70.1.0%2F24"' in page
    assert 'href="/admin/find/?q=10.64.0.0%2F20"' in page
    assert "/admin/find/?q=10.70.300" not in page


def test_a_new_prefix_names_what_it_overlaps_elsewhere() -> None:
    cluster = factories.cluster()
    factories.pool("10.70.0.0/16", name="edge")  # of another cluster
    prefixes = [(cidr, "active", "", "", "", "") for cidr in ("10.70.1.0/24", "10.80.1.0/24")]
    draft = sources.draft(sources.table(sources.IMPORT_PREFIX, prefixes), cluster=cluster)
    page = _page(draft)
    assert page.count("Overlaps 10.70.0.0/16 of pool edge in") == 1
    sources.commit(draft)
    assert "Overlaps 10.70" not in _page(draft)
