"""The journal of clusters, pools and networks: who reads, writes and deletes notes, and what they show."""

from typing import Any

import pytest
from django.urls import reverse

from claims.models import Network
from pools.models import Event, JournalEntry, JournalEntryEvent
from pools.register import clusters, pools
from tests import factories, people
from tests.edges import api as apis


@pytest.fixture
def subjects() -> dict[str, Any]:
    pool = factories.pool("10.0.0.0/24")
    network = Network.objects.create(cluster=pool.cluster, name="blue", kind="")
    return {"pool": pool, "cluster": pool.cluster, "network": network}


def _body(subjects: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    return {"object_type": name, "object_id": subjects[name].pk, "text": f"About {name}", **more}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["pool", "cluster", "network"])
def test_a_note_over_rest_and_on_the_page(subjects: dict[str, Any], name: str) -> None:
    api = apis.Api()
    text = "<b>First</b>\r\nsecond\tcolumn"
    note = api.create("journal/", _body(subjects, name, text=text, kind="warning"))
    assert note["text"] == "<b>First</b>\nsecond  column"
    assert (note["author"], note["kind"]) == (api.user.username, "warning")
    assert (note["object_type"], note["object_id"]) == (name, subjects[name].pk)
    api.create("journal/", _body(subjects, name, text="later"))
    listed = api("GET", f"journal/?object_type={name}&object_id={subjects[name].pk}").json()
    assert [row["text"] for row in listed["results"]] == ["<b>First</b>\nsecond  column", "later"]
    assert api("GET", "journal/?kind=warning").json()["results"] == [note]
    others = {"pool", "cluster", "network"} - {name}
    for other in others:
        assert api("GET", f"journal/?object_type={other}").json()["results"] == []
    url = reverse(f"admin:{_label(subjects[name])}_change", args=[subjects[name].pk])
    page = people.browser().get(url).content.decode()
    assert "&lt;b&gt;First&lt;/b&gt;<br>second  column" in page
    assert page.index("later") < page.index("First")
    event = Event.objects.get(pk=JournalEntryEvent.objects.earliest("pgh_id").pk)
    assert (event.type, event.cluster_id) == ("journal.created", subjects["cluster"].pk)
    assert event.pool_id == (subjects["pool"].pk if name == "pool" else None)


def _label(row: Any) -> str:
    return f"{row._meta.app_label}_{row._meta.model_name}"


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"text": "x" * 5001}, "text", "too_long"),
        ({"text": "a\u202eb"}, "text", "invisible_character"),
        ({"object_id": 999_999}, "object_id", "unknown_pool"),
    ],
)
def test_bad_input_is_refused(
    subjects: dict[str, Any], values: dict[str, Any], field: str, code: str
) -> None:
    problem = apis.refused(
        apis.Api()("POST", "journal/", _body(subjects, "pool") | values), 400, code
    )
    assert apis.fields(problem) == {field: code}
    assert not JournalEntry.objects.exists()


def test_writing_needs_the_permission_to_change_the_object(subjects: dict[str, Any]) -> None:
    viewer, operator = apis.Api("viewer"), apis.Api("operator")
    for name in subjects:
        apis.refused(viewer("POST", "journal/", _body(subjects, name)), 403, "permission_denied")
    operator.create("journal/", _body(subjects, "pool"))
    operator.create("journal/", _body(subjects, "network"))
    apis.refused(operator("POST", "journal/", _body(subjects, "cluster")), 403, "permission_denied")
    assert len(viewer("GET", "journal/").json()["results"]) == 2


def test_a_note_is_deleted_by_its_author_or_an_administrator(subjects: dict[str, Any]) -> None:
    author, colleague, boss = (apis.Api(role) for role in ("operator", "operator", "administrator"))
    first, second = (author.create("journal/", _body(subjects, "pool")) for _ in range(2))
    apis.refused(colleague("DELETE", f"journal/{first['id']}/"), 403, "permission_denied")
    assert author("DELETE", f"journal/{first['id']}/").status_code == 204
    assert boss("DELETE", f"journal/{second['id']}/").status_code == 204
    apis.refused(boss("DELETE", f"journal/{second['id']}/"), 404, "not_found")
    assert Event.objects.filter(type="journal.deleted").count() == 2
    assert not JournalEntry.objects.exists()


def test_the_name_stays_when_its_user_is_deleted(subjects: dict[str, Any]) -> None:
    api = apis.Api("operator")
    api.create("journal/", _body(subjects, "pool"))
    api.user.delete()
    assert JournalEntry.objects.get().author == api.user.username
    assert Event.objects.filter(type__startswith="journal.").count() == 1


def test_a_deleted_object_takes_its_notes_and_leaves_their_events(subjects: dict[str, Any]) -> None:
    api = apis.Api()
    for name in subjects:
        api.create("journal/", _body(subjects, name))
    pools.delete(subjects["pool"].pk, author=factories.BY)
    assert not JournalEntry.objects.filter(content_type__model="pool").exists()
    clusters.remove(subjects["cluster"], author=factories.BY)
    assert not JournalEntry.objects.exists()
    deleted = Event.objects.filter(type="journal.deleted").values_list("message", flat=True)
    assert sorted(deleted) == ["About cluster", "About network", "About pool"]


def test_the_form_keeps_what_was_typed(subjects: dict[str, Any]) -> None:
    browser = people.browser()
    url = reverse("admin:journal", args=["pool", subjects["pool"].pk])
    wrong = browser.post(url, {"kind": "danger", "text": "typed\u202e"})
    assert "U+202E" in str(wrong.context["form"].errors["text"])
    assert "typed" in wrong.content.decode()
    answer = browser.post(url, {"kind": "danger", "text": "Do not touch"})
    pool_page = reverse("admin:pools_pool_change", args=[subjects["pool"].pk])
    assert answer["Location"] == f"{pool_page}#journal"
    entry = JournalEntry.objects.get()
    delete = reverse("admin:journal_delete", args=[entry.pk])
    assert delete in browser.get(pool_page).content.decode()
    assert "Do not touch" in browser.get(delete).content.decode()
    assert browser.post(delete)["Location"] == f"{pool_page}#journal"
    assert not JournalEntry.objects.exists()
