"""Release blocks and end cooldowns, after a page that shows the holders."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from pools import tasks
from pools.core import dns_names, errors, holders
from pools.models import Block, BlockState, Event, Pool
from pools.platform.admin import display, forms as fields, lists, pages, row_forms
from pools.register import block_lists, dns
from pools.register.allocator import allocation

MOST = 100  # blocks on one page


class BlockReleaseForm(forms.Form):
    force = forms.BooleanField(
        label=_("Force: release even if the holder has changed"),
        required=False,
        widget=fields.tick(),
        help_text=_("If not selected, a block whose holder has changed is skipped."),
    )
    reason = fields.reason_field(
        label=_("Reason"),
        required=False,
        help_text=_("Recorded in the history. Required for a forced release."),
    )

    def __init__(self, *args: Any, may_force: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        if not may_force:
            del self.fields["force"]
            self.fields["reason"].help_text = gettext("Recorded in the history.")

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("force") and not values.get("reason") and "reason" not in self.errors:
            self.add_error("reason", gettext("Enter a reason. A forced release requires one."))
        return values


def release(request: HttpRequest) -> HttpResponse:
    """Release each block if its holder is still the one that the page showed.

    A forced release ignores the holder; it requires a permission and a reason.
    """
    pages.require(request, "pools.allocate")
    may_force = request.user.has_perm("pools.force_release")
    form = BlockReleaseForm(request.POST or None, may_force=may_force)
    chosen = _chosen_blocks(request, BlockState.HELD)
    if request.method == "POST" and form.is_valid():
        reason = form.cleaned_data.get("reason") or ""
        force = bool(form.cleaned_data.get("force"))
        author = pages.author(request, reason)
        pools = set()
        for block in chosen:
            shown, org = _shown_holder(request, block)
            with pages.errors_as_messages(request):
                result = allocation.release(block.pk, shown, author=author, org=org, force=force)
                messages.success(request, _release_message(result))
                if result.has_pending_requests:
                    pools.add(block.pool_id)
        for pool_id in pools:
            tasks.nudge(pool_id)
        return HttpResponseRedirect(_return_url(request, chosen))
    text = ngettext("Release %(number)s block?", "Release %(number)s blocks?", len(chosen))
    effect = gettext("Another holder can get the addresses after the cooldown of the pool.")
    return _page(request, form, chosen, text, effect, button=gettext("Release"))


def end_cooldown(request: HttpRequest) -> HttpResponse:
    pages.require(request, "pools.force_release")
    form = fields.ReasonForm(request.POST or None)
    chosen = _chosen_blocks(request, BlockState.COOLING)
    if request.method == "POST" and form.is_valid():
        author = pages.author(request, form.cleaned_data["reason"])
        for block in chosen:
            with pages.errors_as_messages(request):
                freed_block = allocation.skip_cooldown(block.pk, author=author)
                address = display.plain_cidr(freed_block["cidr"])
                messages.success(
                    request, gettext("%(address)s can be allocated again.") % {"address": address}
                )
        for pool_id in {block.pool_id for block in chosen}:
            tasks.nudge(pool_id)
        return HttpResponseRedirect(_return_url(request, chosen))
    text = ngettext(
        "End the cooldown of %(number)s block?",
        "End the cooldown of %(number)s blocks?",
        len(chosen),
    )
    effect = gettext(
        "Another holder can get the addresses immediately, while caches and firewalls may still refer to"
        " the last holder."
    )
    return _page(request, form, chosen, text, effect, button=gettext("End cooldown"))


def end_cooldown_url(request: HttpRequest, pool: Pool) -> str:
    """Return the URL of the page that ends the cooldowns of a pool, the first ones; "" if none is or the user may not."""
    if not request.user.has_perm("pools.force_release"):
        return ""
    cooling = block_lists.filter_by_pool(Block.objects.filter(state=BlockState.COOLING), pool.pk)
    ids = list(cooling.order_by("space_id", "cidr").values_list("pk", flat=True)[:MOST])
    return reverse("admin:pools_block_end_cooldown", query={"id": ids}) if ids else ""


def _chosen_blocks(request: HttpRequest, state: BlockState) -> list[Block]:
    """Return up to 100 blocks of the parameter `id` that are in the given state."""
    raw_ids = request.POST.getlist("id") or request.GET.getlist("id")
    ids = [int(text) for text in raw_ids[:MOST] if text.isdigit() and len(text) < 18]
    rows = Block.objects.filter(pk__in=ids, state=state).select_related("pool__cluster")
    return list(rows.order_by("space_id", "cidr"))


def _shown_holder(request: HttpRequest, block: Block) -> tuple[allocation.Holder, str]:
    """The holder that the confirmation page showed for the block, and its org."""
    parts = ("kind", "id", "uid", "org")
    kind, name, uid, org = (request.POST.get(f"holder-{part}-{block.pk}", "") for part in parts)
    return allocation.Holder(kind, name, uid), org


def _release_message(result: allocation.Release) -> str:
    address = display.plain_cidr(result.block["cidr"])
    holder = result.block["holder"]["id"]
    if result.repeated:
        return gettext("%(address)s was already released.") % {"address": address}
    if result.block["state"] == BlockState.COOLING:
        return gettext("%(address)s was released from %(holder)s and is in cooldown.") % {
            "address": address,
            "holder": holder,
        }
    return gettext("%(address)s was released from %(holder)s and is free.") % {
        "address": address,
        "holder": holder,
    }


def _return_url(request: HttpRequest, chosen: list[Block]) -> str:
    """Return the URL of the list with its filters, or of the block if the action began there."""
    if (
        lists.FILTERS not in request.GET
        and len(chosen) == 1
        and Block.objects.filter(pk=chosen[0].pk, state__in=("held", "cooling")).exists()
    ):
        return display.url_of(chosen[0])
    return lists.list_url(request, "admin:pools_block_changelist")


def _page(
    request: HttpRequest,
    form: forms.Form,
    chosen: list[Block],
    text: str,
    effect: str,
    *,
    button: str,
) -> HttpResponse:
    if not chosen:
        messages.warning(
            request,
            str(errors.NotFound(gettext("None of the selected blocks is in the required state."))),
        )
        return HttpResponseRedirect(lists.list_url(request, "admin:pools_block_changelist"))
    return pages.confirmation(
        request,
        Block,
        title=text % {"number": display.digits(len(chosen))},
        button=button,
        effects=[effect],
        back=_return_url(request, chosen),
        form=form,
        values=[pair for block in chosen for pair in shown_values(block.pk, block)],
        details="cadastre/block_rows.html",
        blocks=chosen,
        with_pool=True,
    )


def shown_values(block_id: int, holder: Any) -> list[tuple[str, object]]:
    """Return the fields by which a page that asks names a block and its holder, as `_shown_holder` reads them."""
    parts = {
        "kind": holder.holder_kind,
        "id": holder.holder_id,
        "uid": holder.holder_uid,
        "org": holder.org,
    }
    values = [(f"holder-{part}-{block_id}", value) for part, value in parts.items()]
    return [("id", block_id), *values]


class DNSNameForm(row_forms.RowForm):
    dns_name = fields.ParsedField(
        dns_names.parse_name,
        label=_("DNS name"),
        required=False,
        widget=fields.text(placeholder="web-1.example.org"),
        help_text=_(
            "Several addresses may have the same name. Empty: the name of the pool's pattern."
        ),
    )
    # The holder that the page showed: its successor does not get the name.
    kind = forms.CharField(widget=forms.HiddenInput())
    holder = forms.CharField(widget=forms.HiddenInput())


def edit_name(request: HttpRequest, block: Block) -> HttpResponse:
    """Show and save the form."""
    shown = {"kind": block.holder_kind, "holder": block.holder_id}
    form = DNSNameForm(request.POST or None, initial=shown)
    events = Event.objects.filter(table="dnsnameevent", cidr=str(block.cidr)).order_by("-id")
    form.show_row(block, lambda row: {"dns_name": dns.name_of(row)}, events={"dns_name": events})
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        holder = holders.Holder(values["kind"], values["holder"])
        with pages.errors_at_field(form):
            name = values["dns_name"] or ""
            dns.set_name(
                block.pk,
                name,
                author=pages.author(request),
                holder=holder,
                version=form.check_version,
            )
            return pages.done(request, gettext("The DNS name was saved."), block)
    return pages.form_page(
        request,
        block,
        form,
        title=gettext("DNS name of %(address)s") % {"address": display.plain_cidr(block.cidr)},
    )
