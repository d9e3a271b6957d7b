"""Receivers of alerts and events: webhooks, e-mail, services of Apprise. A webhook's secret is shown once, in the response that creates it."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django.views.decorators.debug import sensitive_variables

from pools.admin.clusters.field import CLUSTERS
from pools.admin.pools.blocks import POOLS
from pools.models import Cluster, Delivery, DeliveryState, Level, Pool, TargetKind, WebhookTarget
from pools.platform.admin import columns, display, forms as fields, objects, pages, row_forms
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.alerts import outbox, targets
from pools.platform.conditions import registry
from pools.platform.events import Author
from pools.platform.outbound import credentials

MOST = 50  # failed deliveries on the page of a target, and as many others
LIST = "admin:pools_webhooktarget_changelist"


def _codes() -> list[tuple[str, str]]:
    return [(code, registry.words(code)) for code in targets.codes()]


class TargetForm(row_forms.ObjectForm):
    name = fields.ParsedField(
        targets.parse_name, label=_("Name"), widget=fields.text(placeholder="on-call")
    )
    url = fields.ParsedField(
        targets.parse_url,
        label=_("URL"),
        widget=fields.text(
            placeholder="https://alerts.example.org/cadastre", **{"data-secret": ""}
        ),
        help_text=_(
            "https: a signed webhook. mailto:ops@example.org: e-mail. Or a URL of Apprise: slack, workflows (Teams),"
            " mmosts (Mattermost), pagerduty, opsgenie, discord and others; it is stored as a secret, and so is a query."
        ),
    )
    alerts = forms.BooleanField(
        label=_("Send alerts"), required=False, initial=True, widget=fields.tick()
    )
    least_level = forms.ChoiceField(
        label=_("From level"),
        choices=[*reversed(Level.choices)],
        initial=Level.WARNING,
        required=False,
        widget=fields.select(),
        help_text=_("Alerts of this level and of more severe ones."),
    )
    digest = forms.BooleanField(
        label=_("Once a day"),
        required=False,
        widget=fields.tick(),
        help_text=_("One message in the morning about the open alerts, instead of one for each."),
    )
    codes = forms.MultipleChoiceField(
        choices=_codes,
        required=False,
        label=_("Conditions"),
        widget=fields.ticks(),
        help_text=_("No selection: all conditions, including those that later versions add."),
    )
    event_types = fields.LinesField(
        targets.parse_type,
        label=_("Events"),
        widget=fields.lines(3, placeholder="pool"),
        help_text=_(
            "Types of events (pool.created) or their first words (pool), one per line; * is all"
            " events. Empty: no events."
        ),
    )
    clusters = fields.LinesField(
        lambda line: CLUSTERS.parse_line(Cluster.objects.all(), line, field="clusters"),
        label=_("Clusters"),
        widget=fields.lines(2, placeholder="prod"),
        help_text=_("Only alerts and events of these, one per line. Empty: of all, and of none."),
    )
    event_pools = fields.LinesField(
        lambda line: POOLS.parse_line(Pool.objects.all(), line, field="event_pools"),
        label=_("Events of pools"),
        widget=fields.lines(2, placeholder="prod/green-pool"),
        help_text=_("Cluster and name, one per line. Empty: of all pools."),
    )
    ca = fields.ParsedField(
        credentials.parse_ca,
        label=_("CA certificate"),
        required=False,
        widget=fields.lines(4, placeholder="-----BEGIN CERTIFICATE-----"),  # no text: PEM
        help_text=_("PEM. Required if the certificate of the receiver is issued by a private CA."),
    )
    enabled = forms.BooleanField(
        label=_("Enabled"), required=False, initial=True, widget=fields.tick()
    )

    class Meta:
        model = WebhookTarget
        fields = (
            "name", "url", "alerts", "least_level", "digest", "codes", "event_types", "clusters",
            "event_pools", "ca", "enabled",
        )  # fmt: skip

    def shown_values(self, row: WebhookTarget) -> dict[str, Any]:
        lines = {
            "event_types": "\n".join(row.event_types),
            "clusters": CLUSTERS.name_lines(Cluster.objects.all(), row.clusters),
            "event_pools": POOLS.name_lines(Pool.objects.all(), row.event_pools),
        }
        return {name: lines.get(name, value) for name, value in super().shown_values(row).items()}

    def clean_least_level(self) -> str:
        return self.cleaned_data["least_level"] or Level.WARNING

    def clean_ca(self) -> str:
        return self.cleaned_data["ca"] or ""


class OwnTargetForm(TargetForm):
    """The part of a target that its user decides; its receiver is their e-mail address."""

    name = url = alerts = event_types = event_pools = ca = None  # type: ignore[assignment]
    clean_ca = None  # type: ignore[assignment]

    class Meta(TargetForm.Meta):
        fields = ("least_level", "digest", "codes", "clusters", "enabled")  # type: ignore[assignment]


def _mine(request: HttpRequest) -> HttpResponse:
    """Show and change the target of the user who asks."""
    user: Any = request.user
    row = WebhookTarget.objects.filter(user=user).first()
    form = OwnTargetForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request)
        with pages.errors_at_field(form):
            url = targets.parse_url(f"mailto:{quote(user.email, safe='@+')}")
            values = {**form.cleaned_data, "url": url}
            if row:
                targets.change(row, values, author=author)
            else:
                targets.create(user.get_username()[:100], user=user, author=author, **values)
            return pages.done(request, gettext("Saved."), reverse("admin:pools_alert_changelist"))
    return pages.form_page(
        request,
        WebhookTarget,
        form,
        title=gettext("Alerts by e-mail"),
        button=gettext("Save"),
        back=reverse("admin:pools_alert_changelist"),
        intro=gettext("Alerts are sent to %(address)s.") % {"address": user.email}
        if user.email
        else gettext("Your account has no e-mail address."),
    )


def state(target: WebhookTarget) -> SafeString:
    """Return the state of a webhook: disabled, failing or ok."""
    if not target.enabled and target.switched_off_at:
        return display.state("failed", gettext("Switched off, because it accepted nothing."))
    if not target.enabled:
        return display.state("ignored", gettext("Disabled: no deliveries are created or sent."))
    if target.failures:
        return display.state(
            "failed",
            ngettext(
                "The last delivery failed.",
                "The last %(number)s deliveries failed.",
                target.failures,
            )
            % {"number": target.failures},
        )
    return display.state("ok")


@sensitive_variables("secret")
def _rotate(request: HttpRequest, row: WebhookTarget) -> HttpResponse:
    if request.method != "POST":
        return pages.confirmation(
            request,
            row,
            title=gettext("Rotate the secret of %(webhook)s?") % {"webhook": row.name},
            effects=[
                gettext("Messages are signed with a new secret, which is shown once."),
                gettext("The receiver refuses messages until it has the new secret."),
            ],
            button=gettext("Rotate secret"),
        )
    secret = targets.rotate(row, author=pages.author(request))
    return _secret_page(request, row, secret)


def _test(request: HttpRequest, row: WebhookTarget) -> HttpResponse:
    message = gettext(
        "A test delivery is queued and is sent within seconds. Its result is listed below."
    )
    return _queue(request, row, lambda: outbox.write_test(row), message)


def _queue(
    request: HttpRequest, row: WebhookTarget, work: Callable[[], object], message: str
) -> HttpResponse:
    if request.method == "POST":
        with pages.errors_as_messages(request):
            work()
            messages.success(request, message)
    return HttpResponseRedirect(display.url_of(row))


def _resend(request: HttpRequest, row: WebhookTarget, delivery_id: int) -> HttpResponse:
    delivery = Delivery.objects.filter(target=row, pk=delivery_id).first()
    if delivery is None:
        raise Http404(gettext("This delivery does not exist."))
    message = gettext("The delivery is queued again and is sent within seconds.")
    return _queue(request, row, lambda: outbox.send_again(delivery), message)


@sensitive_variables("secret")
def _secret_page(request: HttpRequest, row: WebhookTarget, secret: str) -> HttpResponse:
    """Return the page with the secret. The register stores the secret encrypted."""
    return pages.page(
        request,
        "webhook_secret.html",
        row,
        title=gettext("Secret of %(webhook)s") % {"webhook": row.name},
        secret=secret,
    )


@admin.register(WebhookTarget)
class WebhookTargetAdmin(objects.ObjectAdmin[WebhookTarget]):
    form = TargetForm
    form_template = "webhook_target.html"
    shows_row = True
    add_title = _("Add a receiver of alerts")
    deletion_texts = {
        "title": _("Delete webhook %(name)s?"),
        "deleted": _("Webhook %(name)s was deleted."),
    }
    row_name, row_names = _("webhook"), _("webhooks")
    list_display = (
        columns.link("name", _("name")),
        Column("state", _("state"), state),
        Column("kind", _("kind"), lambda target: target.kind.label),
        columns.address("url", _("URL")),
        Column(
            "codes",
            _("conditions"),
            lambda target: ", ".join(map(registry.words, target.codes)) or gettext("all"),
        ),
        columns.number("waiting", _("pending deliveries")),
    )
    search_help_text = _("Name or URL")
    exported = ("id", "name", "url", "codes", "enabled", "created_at")
    ordering = ("name",)
    list_before_template = "cadastre/webhook_targets_intro.html"
    list_pages = (Page("mine", _mine, "pools.view_alert"),)
    row_pages = (
        Page("rotate", _rotate, "pools.change_webhooktarget"),
        Page("test", _test, "pools.change_webhooktarget"),
        Page("again", _resend, "pools.change_webhooktarget", path="again/<int:delivery_id>"),
        Page("history", lambda _request, _target: HttpResponseRedirect(reverse(LIST))),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookTarget]:
        count = Count("deliveries", filter=Q(deliveries__state="pending"))
        return super().get_queryset(request).defer("sealed").annotate(waiting=count)

    def form_context(self, request: HttpRequest, row: WebhookTarget | None) -> dict[str, Any]:
        if row is None:
            return {"template": "edit_form.html", "autocomplete": "off"}
        deliveries: list[Delivery] = []
        if request.user.has_perm("pools.view_delivery"):
            rows = Delivery.objects.filter(target=row).select_related("alert").defer("body")
            # Failures first: of events there may be thousands of messages.
            deliveries += rows.filter(state=DeliveryState.FAILED)[:MOST]
            deliveries += rows.exclude(state=DeliveryState.FAILED)[:MOST]
        return {
            "title": row.name,
            "state": state(row),
            "deliveries": deliveries,
            "counts": targets.counts(row),
            "call": f"webhook-targets/{row.pk}/",
        }

    @sensitive_variables("secret")
    def save_row(self, row: WebhookTarget | None, form: Any, author: Author) -> WebhookTarget:
        if row is not None:
            return targets.change(row, form.cleaned_data, author=author, version=form.check_version)
        target, secret = targets.create(author=author, **form.cleaned_data)
        target.__dict__["secret"] = secret  # for the page that shows it once
        return target

    @sensitive_variables("secret")
    def response_add(
        self, request: HttpRequest, obj: WebhookTarget, post_url_continue: str | None = None
    ) -> HttpResponse:
        secret = obj.__dict__.pop("secret")
        if obj.kind is not TargetKind.WEBHOOK:
            return pages.done(request, gettext("The receiver was added."), obj)
        return _secret_page(request, obj, secret)

    def show_saved(self, request: HttpRequest, row: WebhookTarget, _message: str) -> HttpResponse:
        return pages.done(request, gettext("The webhook was changed."), row)

    def delete_model(self, request: HttpRequest, obj: WebhookTarget) -> None:
        targets.delete(obj, author=pages.author(request))

    def deletion_effects(self, row: WebhookTarget) -> list[str]:
        pending = targets.counts(row)["pending"]
        text = ngettext(
            "%(number)s pending message is not sent.",
            "%(number)s pending messages are not sent.",
            pending,
        )
        no_more = gettext("No more alerts are sent to %(url)s, and its secret is deleted.")
        return [no_more % {"url": row.url}, text % {"number": display.digits(pending)}]
