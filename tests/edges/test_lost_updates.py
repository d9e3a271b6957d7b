"""Every form that changes a row refuses to overwrite what somebody saved since its page was opened."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client

from claims.models import Entry, VMImport
from pools.models import Connection
from tests import people
from tests.claims.access import answers
from tests.security import everything, requests

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
    "claims/wave/{wave_id}/edit/": ("note", "name"),
    "claims/membership/{membership_id}/change/": ("namespaces", "namespaces"),
    "claims/networksettings/of/{cluster_id}/": ("default_nad_name", "default_nad_namespace"),
    "auth/user/{user_id}/change/": ("first_name", "last_name"),
    "auth/group/{group_id}/change/": ("name", "name"),
}
# Forms that add something, or set a new password: they replace nothing that their page shows.
NO_ROW = {"password", "journal", "allocate"}
# Forms of Django's own, and rows of imports, which stay as they were sent with what is wrong beside them.
TAKES_ANYTHING = ("/admin/auth/", "/admin/profile/", "/admin/pools/import/")
VALUES = {
    "mode": ("managed", "managed"), "instance_mtu": ("1400", "1500"), "event_types": ("pool", "pool"),
    "every_minutes": ("60", "90"), "dns_name": ("a.example.org", "b.example.org"),
    "default_nad_name": ("nad-one", ""), "default_nad_namespace": ("", "ns-two"),
    "name": ("first-name", "second-name"), "vm": ("first", "second"),
}  # fmt: skip


_NUMBER = re.compile(r"\d+")


def _no_numbers(path: str) -> str:
    return "/admin/" + re.sub(r"{\w+}", "0", path)


class Form(HTMLParser):
    """The values of the forms of a page; `shown` has for each form the names that people see a value of, and
    `texts` those in which they type a line or more.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []
        self.shown: list[set[str]] = []
        self.texts: list[set[str]] = []
        self.methods: list[str] = []
        self.actions: list[str] = []
        self._area = self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name, value = values.get("name") or "", values.get("value") or ""
        if tag == "form":
            self.forms.append({})
            self.shown.append(set())
            self.texts.append(set())
            self.methods.append((values.get("method") or "get").lower())
            self.actions.append(values.get("action") or "")
        if tag == "option" and "selected" in values and self._select:
            self._add(self._select, value)
        self._select = name if tag == "select" else self._select
        self._area = name if tag == "textarea" else ""
        is_sent = not {"disabled", "readonly"} & {*values} and "__prefix__" not in name
        if self.forms and name and is_sent and (self._area or values.get("type") == "text"):
            self.texts[-1].add(name)
        ticks = values.get("type") in {"checkbox", "radio"}
        belongs = values.get("form") != ""  # it is sent with the form around it
        if tag == "input" and name and belongs and (not ticks or "checked" in values):
            self._add(name, value or ("on" if ticks else ""), values.get("type") or "text")

    def handle_data(self, data: str) -> None:
        if self._area:
            self._add(self._area, data.removeprefix("\n"))
            self._area = ""

    def _add(self, name: str, value: str, kind: str = "text") -> None:
        if self.forms:
            self.forms[-1].setdefault(name, []).append(value)
            if value.strip() and kind not in {"hidden", "submit"}:
                self.shown[-1].add(name)


def read(page: Any) -> dict[str, list[str]]:
    forms = Form(page.content.decode()).forms
    result = [form for form in forms if "version" in form]
    assert len(result) == 1, "one form of the page has the version that it read"
    return result[0]


@pytest.fixture
def world() -> everything.Everything:
    return everything.create()


def _pages(world: everything.Everything, *, of_rows: bool) -> Iterator[tuple[str, Form]]:
    """Yield the path of every page, or of those that are about a row, with its forms."""
    browser = people.browser()
    for address in answers.addresses("admin/"):
        if (address.names or not of_rows) and "logout" not in address.path:
            path, _body = requests.request(world, address, "GET")
            page = browser.get(path)
            if page.status_code == 200 and page.headers["Content-Type"].startswith("text/html"):
                yield path, Form(page.content.decode())


@pytest.mark.exhaustive
def test_every_form_that_shows_values_of_a_row_has_their_version(
    world: everything.Everything,
) -> None:
    versioned, without = set(), []
    for path, page in _pages(world, of_rows=True):
        for method, names, shown in zip(page.methods, page.forms, page.shown, strict=True):
            if any(name == "version" or name.endswith("-version") for name in names):
                versioned.add(_NUMBER.sub("0", path))
            elif method == "post" and shown and not NO_ROW & {*path.split("/")}:
                without.append((path, sorted(shown)))
    assert without == []
    tried = {_NUMBER.sub("0", "/admin/" + path.format(**_values(world))) for path in PAGES}
    assert tried - versioned == set()
    parts = {
        *map(_no_numbers, CORRECTIONS),
        "/admin/pools/cluster/0/connect/",
        "/admin/claims/ippool/0/entries/",
        "/admin/lists/knox.authtoken/filters/",  # of a new one
    }
    assert versioned - tried - parts == set(), "each is tried below"


@pytest.mark.exhaustive
def test_no_field_of_a_form_takes_what_is_no_text(world: everything.Everything) -> None:
    """NUL breaks no page, wherever it is sent; a control character is refused where people type."""
    taken = []
    for path, page in _pages(world, of_rows=False):
        for method, action, form, texts in zip(
            page.methods, page.actions, page.forms, page.texts, strict=True
        ):
            url = urljoin(path, action)
            for name in set(form) - {"csrfmiddlewaretoken"} if method == "post" else ():
                _post(url, {**form, name: ["a\0b"]})
                if name in texts and _post(url, {**form, name: ["a\x07b"]}) == 302:
                    taken.append((url, name))
    assert [field for field in taken if not field[0].startswith(TAKES_ANYTHING)] == []


def _post(url: str, data: dict[str, list[str]]) -> int:
    """Return the status; what was saved is undone, also the session."""
    with transaction.atomic():
        browser = people.browser()
        answer = browser.post(url, data)
        transaction.set_rollback(True)
    return answer.status_code


def _values(world: everything.Everything) -> dict[str, Any]:
    rows = {"cluster_id": "pools.cluster", "user_id": "auth.user"}
    group = Group.objects.get_or_create(name="team")[0]  # those of roles keep their names
    values = world.values | {name: world.rows[row] for name, row in rows.items()}
    return values | {"group_id": group.pk}


def test_two_tabs_of_every_form(world: everything.Everything) -> None:
    browser = people.browser()
    for path, fields in PAGES.items():
        _try(browser, "/admin/" + path.format(**_values(world)), *fields)


def test_two_tabs_of_the_table_of_entries(world: everything.Everything) -> None:
    browser = people.browser()
    entry = Entry.objects.get(pk=world.values["entry_id"])
    url = f"/admin/claims/ippool/{entry.ippool_id}/entries/"
    tabs = [Form(browser.get(url).content.decode()).forms[-1] for _ in range(2)]
    tabs[0][f"{entry.pk}-note"] = ["first"]
    tabs[1][f"{entry.pk}-vm"] = ["second"]
    assert browser.post(url, tabs[0]).status_code == 302
    refused = browser.post(url, tabs[1])
    assert "changed this MAC entry" in refused.content.decode()
    entry.refresh_from_db()
    assert (entry.note, entry.vm != "second") == ("first", True)
    stored = Form(refused.content.decode()).forms[-1]
    assert browser.post(url, stored).status_code == 302
    entry.refresh_from_db()
    assert (entry.note, entry.vm) == ("", "second")


@pytest.mark.exhaustive
def test_what_nobody_changed_here_stays_as_another_tab_saved_it(
    world: everything.Everything,
) -> None:
    browser = people.browser()
    entry = Entry.objects.get(pk=world.values["entry_id"])
    url = f"/admin/claims/ippool/{entry.ippool_id}/entries/"
    tab = Form(browser.get(url).content.decode()).forms[-1]
    Entry.objects.filter(pk=entry.pk).update(note="by another")
    assert browser.post(url, tab).status_code == 302
    entry.refresh_from_db()
    assert entry.note == "by another"


CORRECTIONS = {
    "pools/import/{import_id}/change/": ("vm", "note"),
    "pools/import/{drafted_register}/change/": ("pool", "description"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", CORRECTIONS)
def test_two_tabs_of_a_row_of_an_import(world: everything.Everything, path: str) -> None:
    browser, (first, second) = people.browser(), CORRECTIONS[path]
    url = "/admin/" + path.format(**world.values)
    _try_part(browser, url, first, second, "first", "second")


@pytest.mark.exhaustive
def test_two_tabs_of_the_mapping_of_an_import(world: everything.Everything) -> None:
    """Each saves the port groups that it changes, and those of the other stay."""
    browser = people.browser()
    row = VMImport.objects.get(pk=world.values["import_id"])
    for line in row.rows:
        line.port_group = "pg-1"
        line.save()
    url = f"/admin/pools/import/{row.pk}/change/"
    first, second = "namespace:pg-1", "namespace:"
    _try_part(browser, url, first, second, "bravo", "charlie")


def _part(page: Any, name: str) -> dict[str, list[str]]:
    forms = [form for form in Form(page.content.decode()).forms if {name, "version"} <= set(form)]
    assert len(forms) == 1, forms
    return {name: values for name, values in forms[0].items() if name != "csrfmiddlewaretoken"}


def _try_part(browser: Client, url: str, first: str, second: str, *texts: str) -> None:
    """As `_try`, for a form of a page that has others."""
    tabs = [_part(browser.get(url), first) for _ in range(2)]
    before = tabs[1].get(second)
    tabs[0][first], tabs[1][second] = [texts[0]], [texts[1]]
    assert browser.post(url, tabs[0]).status_code == 302
    refused = browser.post(url, tabs[1])
    assert refused.status_code == 200
    for item in ("Not saved", "Save anyway", "Reload", texts[0]):
        assert item in refused.content.decode(), item
    stored = _part(refused, second)
    assert stored[second] == [texts[1]]
    assert _part(browser.get(url), second).get(second) == before, "was saved"
    assert browser.post(url, stored).status_code == 302
    assert _part(browser.get(url), second)[second] == [texts[1]]


def test_two_tabs_of_the_credentials_of_a_cluster(world: everything.Everything) -> None:
    browser = people.browser()
    url = f"/admin/pools/cluster/{world.rows['pools.cluster']}/connect/"
    tabs = [read(browser.get(url)) for _ in range(2)]
    for number, tab in enumerate(tabs, start=1):
        config = everything.KUBECONFIG.replace("127.0.0.1", f"203.0.113.{number}")
        tab |= {"text": [config], "offline": ["on"]}
    assert browser.post(url, tabs[0]).status_code == 302
    refused = browser.post(url, tabs[1])
    assert "Not saved" in refused.content.decode()
    connection = Connection.objects.get(cluster=world.rows["pools.cluster"])
    assert connection.server == "https://203.0.113.1:6443"
    assert browser.post(url, read(refused) | {"text": tabs[1]["text"]}).status_code == 302
    connection.refresh_from_db()
    assert connection.server == "https://203.0.113.2:6443"


def test_who_connects_a_cluster_replaces_no_connection_made_meanwhile(
    world: everything.Everything,
) -> None:
    browser = people.browser()
    url = f"/admin/pools/cluster/{world.rows['pools.cluster']}/connect/"
    data = {"text": everything.KUBECONFIG.replace("127.0.0.1", "203.0.113.1"), "offline": "on"}
    answer = browser.post(url, data | {"mode": "observed"}, follow=True)
    assert "somebody has connected this cluster meanwhile" in answer.content.decode()
    assert (
        Connection.objects.get(cluster=world.rows["pools.cluster"]).server
        != "https://203.0.113.1:6443"
    )


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
    for item in ("Not saved", "Save anyway", "Reload", tabs[0][first][0]):
        assert item in text, (url, item)
    stored = read(refused)
    assert stored[second] == tabs[1][second], url
    assert stored["version"] != tabs[1]["version"]
    if not same:
        assert tabs[1][second] != read(browser.get(url)).get(second), (url, "was saved")
    saved = browser.post(url, stored)
    assert saved.status_code == 302, (url, saved.content.decode())
    assert read(browser.get(url)).get(second) == tabs[1][second], url
