"""Pages of a connection: connect, managed resources, test, pause, resume, sync, disconnect."""

import hashlib
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

from pools.admin.clusters import connect_form
from pools.clusters import connection_test, connections, fleet
from pools.clusters.reconcile import registry
from pools.core import errors
from pools.models import Cluster, Connection, Drift, Event, Finding, ObservedObject, SyncRun
from pools.platform.admin import display, pages

LATEST = 10  # sync runs, findings, objects and differences on the page of a cluster


def context(cluster: Cluster) -> dict[str, Any]:
    """Return the template context of the connection card on the page of a cluster."""
    row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
    if row is None:
        return {"summary": None}
    objects = ObservedObject.objects.filter(cluster=cluster).defer("manifest")
    return {
        "summary": fleet.summary(row),
        "runs": SyncRun.objects.filter(cluster=cluster).order_by("-id")[:LATEST],
        "findings": Finding.objects.filter(cluster=cluster).order_by("-since", "-id")[:LATEST],
        "problems": objects.exclude(problem_code="").order_by("kind", "name", "id")[:LATEST],
        "drift": Drift.objects.filter(cluster=cluster, ignored_at=None).order_by("id")[:LATEST],
    }


@sensitive_post_parameters("text", "token", "held")
def connect(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Connect the cluster or replace its credentials after a test; `_test` only tests, `_anyway` needs no rights."""
    row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
    pages.require(request, "pools.change_connection" if row else "pools.add_connection")
    if row and "mode" in request.POST:  # the page had no connection to replace
        messages.error(
            request, gettext("Not saved: somebody has connected this cluster meanwhile.")
        )
        return HttpResponseRedirect(display.url_of(cluster))
    form_class = connect_form.ConnectForm.for_replacement if row else connect_form.ConnectForm
    form = form_class(request.POST or None, request.FILES or None, request=request, cluster=cluster)
    if row:
        changes = Event.objects.filter(table="connectionevent", object_id=row.pk).order_by("-id")
        form.show_row(row, _shown_values, events=dict.fromkeys(_shown_values(row), changes))
    examination: connection_test.ConnectionTest | None = None
    if request.method == "POST" and form.is_valid() and form.source is not None:
        if "_test" in request.POST or not form.cleaned_data["offline"]:
            examination = _examine(form, row)
        if "_test" not in request.POST and _may_save(request, form, examination):
            with pages.errors_at_field(
                form, lambda problem: connect_form.field_of_problem(problem) or form.source_field
            ):
                _save(request, cluster, row, form)
                return HttpResponseRedirect(_url_of_tab(cluster))
    title, button = (
        (gettext("Replace the credentials of %(cluster)s"), gettext("Replace credentials"))
        if row
        else (gettext("Connect %(cluster)s"), gettext("Connect"))
    )
    return pages.form_page(
        request,
        cluster,
        form,
        title=title % {"cluster": cluster},
        button=button,
        template="connect.html",
        autocomplete="off",
        examination=examination,
        commands=connection_test.commands(),
        read_kinds=sorted({resource.kind for resource in registry.resources()}),
    )


def _examine(
    form: connect_form.ConnectForm, row: Connection | None
) -> connection_test.ConnectionTest | None:
    """Test the connection of the form before it is stored."""
    if form.source is None:
        return None
    checked_terms = connections.parse_terms(row.mode, row.managed_resources) if row else form.terms
    return connection_test.test_source(form.source, checked_terms, registry.resources(), row)


def _may_save(
    request: HttpRequest,
    form: connect_form.ConnectForm,
    examination: connection_test.ConnectionTest | None,
) -> bool:
    """Return True if the test succeeded, was skipped, or lacks only rights that the user does without."""
    if examination is None or examination.succeeded:
        return True
    if not examination.code and "_anyway" in request.POST:
        return True
    if examination.code:
        form.add_fault(examination)
    else:
        form.add_error(None, gettext("Not connected: see the connection test below."))
    return False


def _shown_values(row: Connection) -> dict[str, Any]:
    """Return what a replacement overwrites, the credentials as a digest."""
    digest = hashlib.sha256(row.sealed.encode()).hexdigest()[:8]
    return {gettext("API server"): row.server, gettext("Credentials"): digest}


def _save(
    request: HttpRequest,
    cluster: Cluster,
    row: Connection | None,
    form: connect_form.ConnectForm,
) -> None:
    source, author = form.source, pages.author(request)
    if source is None:
        return
    offline = form.cleaned_data["offline"]
    if row is None:
        connections.connect(
            cluster,
            source,
            form.terms,
            author=author,
            offline=offline,
            confirmed=form.cleaned_data["confirm_other_writer"],
        )
        messages.success(
            request,
            gettext("%(cluster)s is connected. The first sync starts within seconds.")
            % {"cluster": cluster},
        )
    else:
        connections.replace(row, source, author=author, offline=offline, version=form.check_version)
        messages.success(
            request, gettext("The credentials of %(cluster)s were replaced.") % {"cluster": cluster}
        )
    for warning in source.warnings:
        messages.warning(request, pages.sentence(warning))


def terms(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Change the mode and the managed resources."""
    row = _connection(cluster)
    form = connect_form.TermsForm(request.POST or None)
    form.show_row(
        row, lambda row: {"mode": row.mode, "managed_resources": sorted(row.managed_resources)}
    )
    if request.method == "POST" and form.is_valid():
        with pages.errors_at_field(form, connect_form.field_of_problem):
            connections.change(
                row,
                author=pages.author(request),
                terms=form.terms,
                confirmed=form.cleaned_data["confirm_other_writer"],
                version=form.check_version,
            )
            return pages.done(
                request,
                gettext("The managed resources of %(cluster)s were changed.")
                % {"cluster": cluster},
                _url_of_tab(cluster),
            )
    return pages.form_page(
        request,
        cluster,
        form,
        title=gettext("Managed resources of %(cluster)s") % {"cluster": cluster},
        template="terms.html",
    )


@pages.post_only
def test(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Test the connection now; nothing changes."""
    examination = connection_test.test_connection(_connection(cluster), registry.resources())
    return pages.page(
        request,
        "connection_test.html",
        cluster,
        title=gettext("Connection test of %(cluster)s") % {"cluster": cluster},
        examination=examination,
        call=f"clusters/{cluster.name}/connection/test/",
    )


def _set_paused(request: HttpRequest, cluster: Cluster, *, paused: bool) -> HttpResponse:
    connections.change(_connection(cluster), author=pages.author(request), paused=paused)
    message = (
        gettext("Synchronization of %(cluster)s is paused: Cadastre neither reads nor writes it.")
        if paused
        else gettext("Synchronization of %(cluster)s is resumed.")
    )
    return pages.done(request, message % {"cluster": cluster}, _url_of_tab(cluster))


pause = pages.post_only(partial(_set_paused, paused=True))
resume = pages.post_only(partial(_set_paused, paused=False))


@pages.post_only
def reconcile(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Request a sync run now."""
    with pages.errors_as_messages(request):
        connections.make_due(_connection(cluster))
        messages.success(
            request, gettext("A sync of %(cluster)s starts within seconds.") % {"cluster": cluster}
        )
    return HttpResponseRedirect(_url_of_tab(cluster))


def _url_of_tab(cluster: Cluster) -> str:
    return f"{display.url_of(cluster)}#connection"


def disconnect(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show what is removed and what is kept; by POST, disconnect."""
    row = _connection(cluster)
    if request.method == "POST":
        connections.disconnect(row, author=pages.author(request))
        return pages.done(
            request,
            gettext("%(cluster)s is disconnected. Its pools and blocks are kept.")
            % {"cluster": cluster},
            cluster,
        )
    summary = fleet.summary(row)
    counts = {"objects": summary.objects, "findings": summary.findings, "drift": summary.drift}
    return pages.confirmation(
        request,
        cluster,
        title=gettext("Disconnect %(cluster)s?") % {"cluster": cluster},
        button=gettext("Disconnect"),
        effects=[
            gettext(
                "The credentials for %(server)s are deleted. Cadastre stops reading from and writing to this cluster."
            )
            % {"server": row.server},
            gettext(
                "Observed data is deleted: objects %(objects)s, findings %(findings)s, differences %(drift)s."
            )
            % {name: display.digits(count) for name, count in counts.items()},
            gettext(
                "Pools, blocks and the history of %(cluster)s are kept. Observed data is read again after the next"
                " connection."
            )
            % {"cluster": cluster},
        ],
    )


def _connection(cluster: Cluster) -> Connection:
    try:
        return connections.get_connection(cluster)
    except errors.NotFound as error:
        raise Http404(error.message) from error
