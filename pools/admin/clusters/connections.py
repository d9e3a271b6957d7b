"""Pages of a connection: connect, managed resources, test, pause, resume, sync, disconnect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from pools.admin.clusters import connect_form
from pools.clusters import connection_test, connections, fleet
from pools.clusters.reconcile import registry
from pools.core import errors
from pools.models import Cluster, Connection, Drift, Finding, ObservedObject, SyncRun
from pools.platform.admin import display
from pools.platform.admin import pages as admin_pages

LATEST = 10  # sync runs, findings, objects and differences on the page of a cluster


def urls() -> list[URLPattern]:
    """Return the URL patterns below the page of a cluster."""
    pages: dict[str, Callable[..., HttpResponse]] = {
        "connect": connect,
        "terms": terms,
        "test": test,
        "pause": pause,
        "resume": resume,
        "reconcile": reconcile,
        "disconnect": disconnect,
    }
    return [
        path(f"<int:cluster_id>/{name}/", admin_pages.in_admin(view), name=f"pools_cluster_{name}")
        for name, view in pages.items()
    ]


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


@sensitive_post_parameters("text", "held")
def connect(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Connect the cluster or replace its credentials; `_test` only tests them."""
    admin_pages.require(request, "pools.view_cluster")
    cluster = _cluster(cluster_id)
    row = Connection.objects.filter(cluster=cluster).select_related("cluster").first()
    admin_pages.require(request, "pools.change_connection" if row else "pools.add_connection")
    form_class = connect_form.ConnectForm.for_replacement if row else connect_form.ConnectForm
    form = form_class(request.POST or None, request.FILES or None, request=request, cluster=cluster)
    examination: connection_test.ConnectionTest | None = None
    if request.method == "POST" and form.is_valid() and form.source is not None:
        if "_test" in request.POST:
            checked_terms = (
                connections.parse_terms(row.mode, row.managed_resources) if row else form.terms
            )
            examination = connection_test.test_source(
                form.source, checked_terms, registry.resources()
            )
        else:
            try:
                _save(request, cluster, row, form)
            except errors.IpamError as error:
                admin_pages.add_errors(form, error, connect_form.field_of_problem)
            else:
                return HttpResponseRedirect(display.url_of(cluster))
    return admin_pages.page(
        request,
        "connect.html",
        title=(
            gettext("Replace the credentials of %(cluster)s")
            if row
            else gettext("Connect %(cluster)s")
        )
        % {"cluster": cluster},
        opts=Cluster._meta,
        original=cluster,
        cluster=cluster,
        form=form,
        examination=examination,
        replacing=row is not None,
    )


def _save(
    request: HttpRequest,
    cluster: Cluster,
    row: Connection | None,
    form: connect_form.ConnectForm,
) -> None:
    source, author = form.source, admin_pages.author(request)
    if source is None:
        return
    offline = form.cleaned_data["offline"]
    if row is None:
        connections.connect(cluster, source, form.terms, author=author, offline=offline)
        messages.success(
            request,
            gettext("%(cluster)s is connected. The first sync starts within seconds.")
            % {"cluster": cluster},
        )
    else:
        connections.replace(row, source, author=author, offline=offline)
        messages.success(
            request, gettext("The credentials of %(cluster)s were replaced.") % {"cluster": cluster}
        )
    for warning in source.warnings:
        messages.warning(request, admin_pages.sentence(warning))


def terms(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Change the mode and the managed resources."""
    admin_pages.require(request, "pools.change_connection")
    cluster = _cluster(cluster_id)
    row = _connection(cluster)
    form = connect_form.TermsForm(
        request.POST or None, initial={"mode": row.mode, "managed_resources": row.managed_resources}
    )
    if request.method == "POST" and form.is_valid():
        connections.change(row, author=admin_pages.author(request), terms=form.terms)
        messages.success(
            request,
            gettext("The managed resources of %(cluster)s were changed.") % {"cluster": cluster},
        )
        return HttpResponseRedirect(display.url_of(cluster))
    return admin_pages.page(
        request,
        "terms.html",
        title=gettext("Managed resources of %(cluster)s") % {"cluster": cluster},
        opts=Cluster._meta,
        original=cluster,
        cluster=cluster,
        form=form,
    )


@require_POST
def test(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Test the connection now; nothing changes."""
    admin_pages.require(request, "pools.reconcile")
    cluster = _cluster(cluster_id)
    examination = connection_test.test_connection(_connection(cluster), registry.resources())
    return admin_pages.page(
        request,
        "connection_test.html",
        title=gettext("Connection test of %(cluster)s") % {"cluster": cluster},
        opts=Cluster._meta,
        original=cluster,
        cluster=cluster,
        examination=examination,
        call=f"clusters/{cluster.name}/connection/test/",
    )


@require_POST
def pause(request: HttpRequest, cluster_id: int) -> HttpResponse:
    return _set_paused(request, cluster_id, paused=True)


@require_POST
def resume(request: HttpRequest, cluster_id: int) -> HttpResponse:
    return _set_paused(request, cluster_id, paused=False)


def _set_paused(request: HttpRequest, cluster_id: int, *, paused: bool) -> HttpResponse:
    admin_pages.require(request, "pools.change_connection")
    cluster = _cluster(cluster_id)
    connections.change(_connection(cluster), author=admin_pages.author(request), paused=paused)
    message = (
        gettext("Synchronization of %(cluster)s is paused: Cadastre neither reads nor writes it.")
        if paused
        else gettext("Synchronization of %(cluster)s is resumed.")
    )
    messages.success(request, message % {"cluster": cluster})
    return HttpResponseRedirect(display.url_of(cluster))


@require_POST
def reconcile(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Request a sync run now."""
    admin_pages.require(request, "pools.reconcile")
    cluster = _cluster(cluster_id)
    with admin_pages.errors_as_messages(request):
        connections.make_due(_connection(cluster))
        messages.success(
            request, gettext("A sync of %(cluster)s starts within seconds.") % {"cluster": cluster}
        )
    return HttpResponseRedirect(display.url_of(cluster))


def disconnect(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """Show what is removed and what is kept; by POST, disconnect."""
    admin_pages.require(request, "pools.delete_connection")
    cluster = _cluster(cluster_id)
    row = _connection(cluster)
    if request.method == "POST":
        connections.disconnect(row, author=admin_pages.author(request))
        messages.success(
            request,
            gettext("%(cluster)s is disconnected. Its pools and blocks are kept.")
            % {"cluster": cluster},
        )
        return HttpResponseRedirect(display.url_of(cluster))
    return admin_pages.page(
        request,
        "disconnect.html",
        title=gettext("Disconnect %(cluster)s?") % {"cluster": cluster},
        opts=Cluster._meta,
        original=cluster,
        cluster=cluster,
        summary=fleet.summary(row),
    )


def _cluster(cluster_id: int) -> Cluster:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        raise Http404(gettext("This cluster does not exist."))
    return cluster


def _connection(cluster: Cluster) -> Connection:
    try:
        return connections.get_connection(cluster)
    except errors.NotFound as error:
        raise Http404(error.message) from error
