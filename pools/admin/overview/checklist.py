"""The first steps of a site: a checklist on the overview until all of them are done or the user dismisses it."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST
from knox.models import AuthToken

from pools.models import Cluster, Connection, ImportStatus, Preferences, RegisterImport
from pools.register.demo import demo

_DISMISSED = "dismissed"
# What the user says to have looked at, and where that leads.
_LOOKED_AT: dict[str, tuple[str, dict[str, str]]] = {
    "overlaps": ("admin:plan", {"overlaps": "all"}),
    "drift": ("admin:pools_drift_changelist", {}),
}


@dataclass(frozen=True)
class Step:
    """A step with its page; one without `url` is done by a look at the pages of _LOOKED_AT."""

    title: str
    explanation: str
    done: bool
    url: str = ""


def context(request: HttpRequest) -> dict[str, Any]:
    """Return the steps that the user may do, and whether the list is dismissed; no steps where it is not wanted."""
    row = Preferences.objects.filter(user=request.user.pk).first()
    stored = set(row.first_steps if row else ())
    steps = (
        [] if Cluster.objects.filter(name__in=demo.CLUSTERS).exists() else _steps(request, stored)
    )
    done = sum(step.done for step in steps)
    return {
        "first_steps": steps if done < len(steps) else [],
        "first_steps_done": done,
        "first_steps_dismissed": _DISMISSED in stored,
    }


def _steps(request: HttpRequest, stored: set[str]) -> list[Step]:
    may = request.user.has_perm
    steps = []
    if may("pools.add_connection") and may("pools.add_cluster"):
        connected = Connection.objects.order_by("succeeded_at")
        steps += [
            Step(
                gettext("Connect a cluster"),
                gettext("Read-only: Cadastre writes nothing to it."),
                connected.exists(),
                _connect_url(),
            ),
            Step(
                gettext("Wait for the first sync"),
                gettext("It starts within seconds and reads pools, nodes and networks."),
                connected.exclude(succeeded_at=None).exists(),
                reverse("admin:pools_cluster_changelist"),
            ),
        ]
    if may("pools.reconcile"):
        steps.append(
            Step(
                gettext("Look at overlaps and drift"),
                gettext("Where CIDRs overlap, and where a cluster differs from the register."),
                not stored.isdisjoint(_LOOKED_AT),
            )
        )
    if may("pools.add_registerimport"):
        committed = RegisterImport.objects.filter(status=ImportStatus.COMMITTED)
        steps.append(
            Step(
                gettext("Bring your register"),
                gettext("Prefixes and addresses of NetBox, phpIPAM, Infoblox or a spreadsheet."),
                committed.exists(),
                reverse("admin:pools_import_add", query={"kind": RegisterImport.KIND}),
            )
        )
    if may("auth.add_user"):
        steps.append(
            Step(
                gettext("Invite somebody"),
                gettext("With a role, or as owner of the VMs of some namespaces."),
                User.objects.exclude(username=request.user.get_username()).exists(),
                reverse("admin:auth_user_add"),
            )
        )
    if steps:
        steps.append(
            Step(
                gettext("Make a token"),
                gettext("For scripts and tools that use the REST API."),
                AuthToken.objects.exists(),
                reverse("admin:knox_authtoken_create"),
            )
        )
    return steps


def _connect_url() -> str:
    """Return the page that connects the first cluster without a connection, or that adds a cluster."""
    cluster = Cluster.objects.filter(connection=None).order_by("name").first()
    if cluster is None:
        return reverse("admin:pools_cluster_add")
    return reverse("admin:pools_cluster_connect", args=[cluster.pk])


@require_POST
def view(request: HttpRequest) -> HttpResponse:
    """Note that the user looks at a page of a step and lead there; or dismiss the list, or show it again."""
    step = request.POST.get("step", "")
    user: Any = request.user
    row, _ = Preferences.objects.get_or_create(user=user)
    if step == "show":
        row.first_steps = [name for name in row.first_steps if name != _DISMISSED]
    elif step in {*_LOOKED_AT, _DISMISSED}:
        row.first_steps = sorted({*row.first_steps, step})
    row.save(update_fields=["first_steps"])
    name, query = _LOOKED_AT.get(step, ("admin:index", {}))
    return redirect(reverse(name, query=query))
