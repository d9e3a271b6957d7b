"""Every form that changes a row refuses to overwrite what somebody saved since its page was opened."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin

from claims.models import Entry
from pools.platform.admin import lists
from tests import people
from tests.security import everything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

pytestmark = pytest.mark.django_db
# The pages of forms that change a row, and for each the fields that the first and the second tab change.
PAGES = {
    "pools/pool/{pods}/edit/": ("description", "owner"),
    "pools/cluster/{cluster_id}/edit/": ("description", "instance_mtu"),
    "pools/cluster/{cluster_id}/terms/": ("mode", "mode"),
    "pools/container/{container_id}/edit/": ("description", "name"),
    "pools/poolcidr/{cidr_id}/edit/": ("owner", "tags"),
    "pools/environment/{declared}/edit/": ("description", "description"),
    "pools/block/{block_id}/dns-name/": ("dns_name", "dns_name"),
    "pools/customfield/{custom_field_id}/change/": ("label", "description"),
    "pools/webhooktarget/{target_id}/change/": ("name", "event_types"),
    "pools/netboxsource/{netbox_source_id}/edit/": ("name", "every_minutes"),
    "lists/{label}/filters/{filter_id}/": ("name", "name"),
    "claims/network/{network_id}/edit/": ("description", "owner"),
    "claims/ippool/{ippool_id}/edit/": ("note", "note"),
    "claims/entry/{entry_id}/change/": ("note", "vm"),
    "claims/ipamclaim/{claim_id}/edit/": ("note", "note"),
    "claims/wave/{wave_id}/change/?edit=1": ("note", "name"),
    "claims/membership/{membership_id}/change/": ("namespaces", "namespaces"),
    "claims/networksettings/of/{cluster_id}/": ("default_nad_name", "default_nad_namespace"),
}
VALUES = {
    "mode": ("managed", "managed"), "instance_mtu": ("1400", "1500"), "event_types": ("pool", "pool"),
    "every_minutes": ("60", "90"), "dns_name": ("a.example.org", "b.example.org"),
    "default_nad_name": ("nad-one", ""), "default_nad_namespace": ("", "ns-two"),
    "name": ("first-name", "second-name"), "vm": ("first", "second"),
}  # fmt: skip


class Form(HTMLParser):
    """The values of the form of a page that has a version."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []
        self._area = self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name, value = values.get("name") or "", values.get("value") or ""
        if tag == "form":
            self.forms.append({})
        if tag == "option" and "selected" in values and self._select:
            self._add(self._select, value)
        self._select = name if tag == "select" else self._select
        self._area = name if tag == "textarea" else ""
        ticks = values.get("type") in {"checkbox", "radio"}
        if tag == "input" and name and (not ticks or "checked" in values):
            self._add(name, value or ("on" if ticks else ""))

    def handle_data(self, data: str) -> None:
        if self._area:
            self._add(self._area, data.removeprefix("\n"))
            self._area = ""

    def _add(self, name: str, value: str) -> None:
        if self.forms:
            self.forms[-1].setdefault(name, []).append(value)


def read(page: Any) -> dict[str, list[str]]:
    forms = Form(page.content.decode()).forms
    found = [form for form in forms if "version" in form]
    assert len(found) == 1, "one form of the page has the version that it read"
    return found[0]


@pytest.fixture
def made() -> everything.Everything:
    return everything.create()


def _edit_pages() -> Iterator[str]:
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, lists.ListAdmin):
            for page in model_admin.row_pages:
                if page.name in {"edit", "terms"}:
                    yield f"{model._meta.app_label}/{model._meta.model_name}/"


def test_every_edit_page_is_tried() -> None:
    missing = [page for page in _edit_pages() if not any(p.startswith(page) for p in PAGES)]
    assert missing == []


def test_two_tabs_of_every_form(made: everything.Everything) -> None:
    made.values["cluster_id"] = made.rows["pools.cluster"]
    browser = people.browser()
    for path, fields in PAGES.items():
        _try(browser, "/admin/" + path.format(**made.values), *fields)


def test_two_tabs_of_the_table_of_entries(made: everything.Everything) -> None:
    browser = people.browser()
    entry = Entry.objects.get(pk=made.values["entry_id"])
    url = f"/admin/claims/ippool/{entry.ippool_id}/entries/"
    tabs = [Form(browser.get(url).content.decode()).forms[-1] for _ in range(2)]
    tabs[0][f"{entry.pk}-note"] = ["first"]
    tabs[1][f"{entry.pk}-vm"] = ["second"]
    assert browser.post(url, tabs[0]).status_code == 302
    refused = browser.post(url, tabs[1])
    assert "changed this MAC entry" in refused.content.decode()
    entry.refresh_from_db()
    assert (entry.note, entry.vm != "second") == ("first", True)
    kept = Form(refused.content.decode()).forms[-1]
    assert browser.post(url, kept).status_code == 302
    entry.refresh_from_db()
    assert (entry.note, entry.vm) == ("", "second")


@pytest.mark.exhaustive
def test_what_nobody_changed_here_stays_as_another_tab_saved_it(
    made: everything.Everything,
) -> None:
    browser = people.browser()
    entry = Entry.objects.get(pk=made.values["entry_id"])
    url = f"/admin/claims/ippool/{entry.ippool_id}/entries/"
    tab = Form(browser.get(url).content.decode()).forms[-1]
    Entry.objects.filter(pk=entry.pk).update(note="by another")
    assert browser.post(url, tab).status_code == 302
    entry.refresh_from_db()
    assert entry.note == "by another"


def _try(browser: Client, url: str, first: str, second: str) -> None:
    tabs = [read(browser.get(url)) for _ in range(2)]
    tabs[0][first] = [VALUES.get(first, (f"{first}-one", ""))[0]]
    tabs[1][second] = [VALUES.get(second, ("", f"{second}-two"))[1]]
    same = first == second == "mode"  # has two values only
    answer = browser.post(url, tabs[0])
    assert answer.status_code == 302, (url, answer.content.decode())
    refused = browser.post(url, tabs[1])
    text = refused.content.decode()
    assert refused.status_code == 200, url
    for said in ("Not saved", "Save anyway", "Reload", tabs[0][first][0]):
        assert said in text, (url, said)
    kept = read(refused)
    assert kept[second] == tabs[1][second], url
    assert kept["version"] != tabs[1]["version"]
    if not same:
        assert tabs[1][second] != read(browser.get(url)).get(second), (url, "was saved")
    saved = browser.post(url, kept)
    assert saved.status_code == 302, (url, saved.content.decode())
    assert read(browser.get(url)).get(second) == tabs[1][second], url
