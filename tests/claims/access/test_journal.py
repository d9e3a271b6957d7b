"""A VM owner reads the journal of the networks that the owner's namespaces use, and writes nowhere."""

from typing import Any

from django.urls import reverse

from claims.models import Network
from pools.models import JournalEntry
from pools.register import journal
from tests import factories
from tests.claims.access import two_worlds


def _note(row: Any, text: str) -> JournalEntry:
    return journal.add(row, text, "info", user=factories.user(), author=factories.BY)


def test_an_owner_sees_notes_of_own_networks_only() -> None:
    owner = two_worlds.Owner()
    foreign = Network.objects.create(cluster=owner.cluster, name="foreign", kind="cudn")
    own_note, foreign_note = _note(owner.network, "own"), _note(foreign, "secret")
    _note(owner.cluster, "about the cluster")
    browser = owner.browser()
    listed = owner.api().get("/api/v1/journal/").json()["results"]
    assert [row["id"] for row in listed] == [own_note.pk]
    assert owner.api().get(f"/api/v1/journal/{foreign_note.pk}/").status_code == 404
    page = browser.get(reverse("admin:claims_network_change", args=[owner.network.pk]))
    assert "own" in page.content.decode()
    assert browser.get(reverse("admin:journal", args=["network", foreign.pk])).status_code == 404
    assert browser.get(reverse("admin:journal_delete", args=[foreign_note.pk])).status_code == 404
    assert browser.get(reverse("admin:journal_delete", args=[own_note.pk])).status_code == 403
    assert (
        browser.get(reverse("admin:journal", args=["cluster", owner.cluster.pk])).status_code == 403
    )
