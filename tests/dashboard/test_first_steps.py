"""The checklist of a site that is new: who sees which steps, what marks them as done, and what ends it."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from pools.models import Cluster, Connection, Now
from pools.register.demo import demo
from tests import factories, people

EMPTY = "The register is empty"
STEP = re.compile(r"</span> (done|open)</span>\s*<span>(?:<a [^>]*>)?([^<]+)")
ALL = ["Connect a cluster", "Wait for the first sync", "Look at overlaps and drift", "Bring your register",
       "Invite somebody", "Make a token"]  # fmt: skip


def overview(client: Client) -> str:
    answer = client.get(reverse("admin:index"))
    assert answer.status_code == 200
    return answer.content.decode()


def steps(client: Client) -> dict[str, str]:
    """The state of each step by its title."""
    return {title.strip(): state for state, title in STEP.findall(overview(client))}


def choose(client: Client, step: str) -> str:
    answer = client.post(reverse("admin:first_steps"), {"step": step})
    assert answer.status_code == 302
    return str(answer.headers["Location"])


@pytest.fixture
def admin() -> Client:
    return people.browser(is_superuser=True)


def connected(cluster: Cluster, **values: object) -> None:
    Connection.objects.create(
        cluster=cluster, server="https://192.0.2.1", in_cluster=True, due_at=Now(), **values
    )


def test_an_empty_site_leads_to_the_steps(admin: Client) -> None:
    text = overview(admin)
    assert EMPTY in text
    assert steps(admin) == dict.fromkeys(ALL, "open")
    for name in ("pools_cluster_add", "pools_import_add", "auth_user_add", "knox_authtoken_create"):
        assert f'href="{reverse(f"admin:{name}")}' in text, name


def test_steps_are_done_by_what_the_register_has(admin: Client) -> None:
    cluster = factories.cluster()
    assert f'href="{reverse("admin:pools_cluster_connect", args=[cluster.pk])}"' in overview(admin)
    connected(cluster)
    assert steps(admin)["Connect a cluster"] == "done"
    assert steps(admin)["Wait for the first sync"] == "open"
    Connection.objects.update(succeeded_at=Now())
    AuthToken.objects.create(people.user())
    result = [title for title, state in steps(admin).items() if state == "done"]
    assert result == [
        "Connect a cluster",
        "Wait for the first sync",
        "Invite somebody",
        "Make a token",
    ]
    factories.pool("10.0.0.0/28", within=cluster)
    assert EMPTY not in overview(admin)
    assert len(steps(admin)) == len(ALL)  # the list stays until all is done


def test_what_was_looked_at_is_of_the_user(admin: Client) -> None:
    assert choose(admin, "drift") == reverse("admin:pools_drift_changelist")
    assert choose(admin, "overlaps") == reverse("admin:plan", query={"overlaps": "all"})
    assert steps(admin)["Look at overlaps and drift"] == "done"
    other = people.browser(is_superuser=True)
    assert steps(other)["Look at overlaps and drift"] == "open"


def test_dismissed_and_shown_again(admin: Client) -> None:
    choose(admin, "dismissed")
    assert steps(admin) == {}
    assert "Show the first steps" in overview(admin)
    choose(admin, "show")
    assert len(steps(admin)) == len(ALL)
    choose(admin, "anything")
    assert len(steps(admin)) == len(ALL)


def test_only_steps_that_the_user_may_do() -> None:
    viewer = people.browser(people.VIEWER)
    assert EMPTY in overview(viewer)
    assert steps(viewer) == {}
    operator = people.user(people.OPERATOR)
    operator.user_permissions.add(Permission.objects.get(codename="add_registerimport"))
    client = Client()
    client.force_login(operator)
    assert list(steps(client)) == [
        "Look at overlaps and drift",
        "Bring your register",
        "Make a token",
    ]


def test_a_link_changes_nothing(admin: Client) -> None:
    assert admin.get(reverse("admin:first_steps"), {"step": "dismissed"}).status_code == 405
    assert len(steps(admin)) == len(ALL)


@pytest.mark.exhaustive
def test_the_demo_needs_none(admin: Client) -> None:
    demo.load()
    assert steps(admin) == {}
