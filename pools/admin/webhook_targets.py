"""Webhooks: who is told of notices; each secret is shown in the answer that made it, and never again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_variables

from pools.admin import notices
from pools.core import errors
from pools.models import Delivery, WebhookTarget
from pools.platform.admin import display, lists, pages
from pools.platform.admin import forms as fields
from pools.platform.alerts import outbox, targets

MOST = 50  # messages on the page of a target
LIST = "admin:pools_webhooktarget_changelist"


def _codes() -> list[tuple[str, str]]:
    return [(code, notices.words(code)) for code in targets.codes()]


class TargetForm(forms.Form):
    name = fields.ParsedField(targets.parse_name, widget=fields.text(placeholder="on-call"))
    url = fields.ParsedField(
        targets.parse_url,
        label="URL",
        widget=fields.text(placeholder="https://alerts.example.org/cadastre"),
        help_text="Over https. Redirects are not followed; this machine and link-local addresses"
        " are refused.",
    )
    codes = forms.MultipleChoiceField(
        choices=_codes,
        required=False,
        label="Conditions",
        widget=forms.CheckboxSelectMultiple,
        help_text="None means all, those that later versions add included.",
    )
    ca = fields.ParsedField(
        targets.parse_ca,
        label="CA certificate",
        required=False,
        widget=fields.lines(4, placeholder="-----BEGIN CERTIFICATE-----"),
        help_text="PEM, when the receiver's certificate is of an authority of your own.",
    )
    enabled = forms.BooleanField(required=False, initial=True, widget=fields.tick())

    def values(self) -> dict[str, Any]:
        return {**self.cleaned_data, "ca": self.cleaned_data["ca"] or ""}


@admin.register(WebhookTarget)
class WebhookTargetAdmin(lists.Listed[WebhookTarget]):
    list_display = ("shown_name", "shown_state", "shown_url", "shown_codes", "shown_counts")
    list_display_links = None
    search_fields = ("name", "url")
    search_help_text = "Name or URL"
    exported = ("id", "name", "url", "codes", "enabled", "created_at")
    ordering = ("name",)
    sortable_by = ()
    list_before_template = "cadastre/webhook_targets_intro.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookTarget]:
        count = Count("deliveries", filter=Q(deliveries__state="pending"))
        return super().get_queryset(request).defer("sealed").annotate(waiting=count)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pools.add_webhooktarget")

    @admin.display(description="name")
    def shown_name(self, target: WebhookTarget) -> SafeString:
        return display.to(target)

    @admin.display(description="state")
    def shown_state(self, target: WebhookTarget) -> SafeString:
        return state(target)

    @admin.display(description="URL")
    def shown_url(self, target: WebhookTarget) -> SafeString:
        return display.address(target.url)

    @admin.display(description="conditions")
    def shown_codes(self, target: WebhookTarget) -> str:
        return ", ".join(map(notices.words, target.codes)) or "all"

    @admin.display(description="waiting")
    def shown_counts(self, target: Any) -> SafeString:
        return display.number(target.waiting)

    # --- pages ------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        urls = [
            path(
                f"<int:target_id>/{name}/", pages.in_admin(view), name=f"pools_webhooktarget_{name}"
            )
            for name, view in (("rotate", _rotate), ("test", _test))
        ]
        again = path(
            "<int:target_id>/again/<int:delivery_id>/",
            pages.in_admin(_resend),
            name="pools_webhooktarget_again",
        )
        return [*urls, again, *super().get_urls()]

    @sensitive_variables("secret")
    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponseBase:  # type: ignore[override]
        pages.require(request, "pools.add_webhooktarget")
        form = TargetForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                target, secret = targets.create(author=pages.author(request), **form.values())
            except errors.IpamError as error:
                pages.put(form, error)
            else:
                return _secret_page(request, target, secret)
        return pages.page(
            request, "webhook_form.html", title="Add a webhook", opts=self.opts, form=form
        )

    def change_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "pools.view_webhooktarget")
        row = _row(lists.number(object_id))
        names = ("name", "url", "ca", "codes", "enabled")
        form = TargetForm(
            request.POST or None, initial={name: getattr(row, name) for name in names}
        )
        if request.method == "POST":
            pages.require(request, "pools.change_webhooktarget")
            if form.is_valid():
                try:
                    targets.change(row, form.values(), author=pages.author(request))
                except errors.IpamError as error:
                    pages.put(form, error)
                else:
                    messages.success(request, "The webhook was changed.")
                    return HttpResponseRedirect(display.url_of(row))
        deliveries: QuerySet[Delivery] = Delivery.objects.none()
        if request.user.has_perm("pools.view_delivery"):
            deliveries = Delivery.objects.filter(target=row).select_related("notice").defer("body")
        return pages.page(
            request,
            "webhook_target.html",
            title=row.name,
            opts=self.opts,
            original=row,
            row=row,
            form=form,
            state=state(row),
            deliveries=deliveries[:MOST],
            counts=targets.counts(row),
            call=f"webhook-targets/{row.pk}/",
        )

    def delete_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "pools.delete_webhooktarget")
        row = _row(lists.number(object_id))
        if request.method == "POST":
            targets.delete(row, author=pages.author(request))
            messages.success(request, f"{row.name} is told of nothing any more.")
            return HttpResponseRedirect(reverse(LIST))
        return pages.page(
            request,
            "webhook_delete.html",
            title=f"Delete the webhook {row.name}?",
            opts=self.opts,
            original=row,
            row=row,
            counts=targets.counts(row),
        )

    def history_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        pages.require(request, "pools.view_webhooktarget")
        return HttpResponseRedirect(reverse(LIST))


def state(target: WebhookTarget) -> SafeString:
    """Off, failing, or well."""
    if not target.enabled:
        return display.state(
            "ignored", "Switched off: nothing is sent, and nothing is written for it."
        )
    if target.failures:
        return display.state("failed", f"The last {target.failures} tries failed.")
    return display.state("ok")


def _row(pk: int) -> WebhookTarget:
    row = WebhookTarget.objects.defer("sealed").filter(pk=pk).first()
    if row is None:
        raise Http404("There is no such webhook.")
    return row


@sensitive_variables("secret")
def _rotate(request: HttpRequest, target_id: int) -> HttpResponseBase:
    pages.require(request, "pools.change_webhooktarget")
    row = _row(target_id)
    if request.method != "POST":
        return HttpResponseRedirect(display.url_of(row))
    secret = targets.rotate(row, author=pages.author(request))
    return _secret_page(request, row, secret)


def _test(request: HttpRequest, target_id: int) -> HttpResponseBase:
    pages.require(request, "pools.change_webhooktarget")
    row = _row(target_id)
    if request.method == "POST":
        with pages.told(request):
            outbox.write_test(row)
            messages.success(request, "A test message is sent within seconds: see below.")
    return HttpResponseRedirect(display.url_of(row))


def _resend(request: HttpRequest, target_id: int, delivery_id: int) -> HttpResponseBase:
    pages.require(request, "pools.change_webhooktarget")
    row = _row(target_id)
    delivery = Delivery.objects.filter(target=row, pk=delivery_id).first()
    if delivery is None:
        raise Http404("There is no such message.")
    if request.method == "POST":
        with pages.told(request):
            outbox.send_again(delivery)
            messages.success(request, "The message is sent again within seconds.")
    return HttpResponseRedirect(display.url_of(row))


@sensitive_variables("secret")
def _secret_page(request: HttpRequest, row: WebhookTarget, secret: str) -> HttpResponseBase:
    """In this answer only: the register keeps it sealed."""
    return pages.page(
        request,
        "webhook_secret.html",
        title=f"The secret of {row.name}",
        opts=WebhookTarget._meta,
        original=row,
        row=row,
        secret=secret,
    )
