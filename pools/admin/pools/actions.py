"""Actions on a pool: allocate, reserve a range, add a CIDR."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as form_fields
from pools.admin.pools import usage_bars
from pools.core import dns_names, errors
from pools.core.cilium import ciliumnode
from pools.core.cilium.podippool import CidrEntry
from pools.core.holders import MOST_BLOCKS
from pools.models import AllocationRequest, Block, ObservedObject, Pool, PoolCIDR
from pools.platform.admin import display, forms as fields, pages, related
from pools.register import dns, overlaps, pools, previews, usage
from pools.register.allocator import allocation, requests

KINDS = ("instance", "node", "env", "vm")
KEPT = ("kind", "org", "env", "family")  # fields that *Allocate another* has again
_KIND_OF = {"pod": "node", "node": "node", "instance": "instance", "ipv4": "env", "vm": "vm"}


def _suggest_nodes(_request: HttpRequest, text: str) -> list[str]:
    """Return names of nodes: of CiliumNodes that are observed, and of holders of blocks."""
    observed = ObservedObject.objects.filter(kind=ciliumnode.KIND, name__contains=text)
    held = Block.objects.filter(holder_kind="node", state="held", holder_id__contains=text)
    names = observed.values_list("name").union(held.values_list("holder_id")).order_by("name")
    return [name for (name,) in names[: related.SUGGESTIONS]]


_NODES = related.offer_names("nodes", "pools.view_observedobject", _suggest_nodes)


class AllocateForm(forms.Form):
    kind = fields.identifier_field(
        label=_("Holder type"),
        max_length=63,
        widget=fields.text(list="holder-kinds"),
        help_text=_("node, instance, env, vm, or a custom type."),
    )
    id = fields.identifier_field(label=_("Holder ID"))
    org = form_fields.org_field()
    env = form_fields.env_field(required=False)
    family = forms.ChoiceField(label=_("IP family"), required=False, widget=fields.select())
    count = forms.IntegerField(
        label=_("How many"),
        min_value=1,
        max_value=MOST_BLOCKS,
        required=False,
        widget=fields.text(inputmode="numeric"),
        help_text=_("Blocks of each family for this holder. Empty: one."),
    )
    exact = fields.block_field(
        label=_("Exact address or block"),
        required=False,
        help_text=_("Empty: the next free block."),
    )
    dns_name = fields.ParsedField(
        dns_names.parse_name,
        label=_("DNS name"),
        required=False,
        widget=fields.text(placeholder="web-1.example.org"),
        help_text=_("Only for single addresses, and not for a request that is queued."),
    )
    wait = forms.BooleanField(
        label=_("Queue the request if the pool is exhausted"),
        required=False,
        widget=fields.tick(),
        help_text=_("The request stays pending and is retried when blocks are released."),
    )

    def __init__(self, pool: Pool, data: Any, *, shown: Mapping[str, str]) -> None:
        exact = shown.get("exact", "")[:64]
        initial = {
            "kind": _KIND_OF[pool.category],
            **{name: shown[name] for name in KEPT if name in shown},
        }
        initial["exact"] = exact
        if exact:
            initial["family"] = "6" if ":" in exact else "4"
        super().__init__(data, initial=initial)
        if initial["kind"] == "node":
            self.fields["id"].widget = related.name_widget(_NODES)
        families = [family for family in (4, 6) if pool.mask_size(family) is not None]
        self.fields["exact"].widget.attrs["data-free"] = _free_url(pool)
        choices = [(str(family), f"IPv{family}") for family in families]
        if len(families) > 1:
            choices.insert(0, ("", gettext("IPv4 and IPv6")))
        field: Any = self.fields["family"]
        field.choices = choices

    def demand(self) -> allocation.BlockDemand:
        values = self.cleaned_data
        return allocation.BlockDemand(
            holders=(allocation.Holder(values["kind"], values["id"]),),
            families=(int(values["family"]),) if values["family"] else (),
            count=values["count"] or 1,
            org=values["org"] or "",
            env=values["env"] or "",
            cidr=values["exact"],
        )


def _free_url(pool: Pool) -> str:
    """Return the URL from which the button *Next free address* of an input fills it in."""
    return reverse("admin:pools_pool_free", args=[pool.pk])


def allocate(request: HttpRequest, pool: Pool) -> HttpResponse:
    pages.require(request, "pools.allocate")
    form = AllocateForm(pool, request.POST or None, shown=request.GET)
    if request.method == "POST" and form.is_valid():
        wait, dns_name = form.cleaned_data["wait"], form.cleaned_data["dns_name"] or ""
        with pages.errors_at_field(form, _allocate_field):
            dns.check_demand(pool, form.demand(), dns_name, wait=wait)
            author = pages.author(request)
            result = requests.allocate(pool.pk, form.demand(), author=author, wait=wait)
            if isinstance(result, allocation.Allocation):
                dns.name_blocks(result.blocks, dns_name, author=author)
            _report_result(request, result)
            if "_another" in request.POST:
                kept = {name: form.cleaned_data[name] or "" for name in KEPT}
                return HttpResponseRedirect(
                    reverse("admin:pools_pool_allocate", args=[pool.pk], query=kept)
                )
            return HttpResponseRedirect(display.url_of(pool))
    return _small_form(
        request,
        pool,
        form,
        title=gettext("Allocate from %(pool)s") % {"pool": pool.name},
        button=gettext("Allocate"),
        families=usage.usage_by_pool([pool])[pool.pk],
        kinds=KINDS,
    )


def _report_result(request: HttpRequest, result: allocation.Allocation | AllocationRequest) -> None:
    if isinstance(result, AllocationRequest):
        messages.warning(
            request,
            gettext("The pool is exhausted. Request %(id)s is queued until a block is released.")
            % {"id": result.pk},
        )
        return
    message = (
        gettext("%(address)s was allocated to %(holder)s.")
        if result.status == 201
        else gettext("%(holder)s already holds %(address)s.")
    )
    for block in result.blocks:
        address = block["address"] or block["cidr"]
        messages.success(request, message % {"address": address, "holder": block["holder"]["id"]})


_EXACT = {"already_allocated", "cooling_down", "reserved_address", "not_a_block", "outside_pool"}


def _allocate_field(problem: errors.FieldProblem) -> str | None:
    if problem.code in _EXACT or problem.field.startswith("cidr"):
        return "exact"
    return {"holder.kind": "kind", "holder.id": "id"}.get(problem.field, problem.field)


# --- reserve, add a CIDR --------------------------------------------------------------------------


class ReserveForm(forms.Form):
    range = fields.range_field(
        label=_("Range"),
        widget=fields.addresses_text(placeholder="10.20.0.0-10.20.0.99"),
        help_text=_(
            "First and last address, or a CIDR. Blocks in use stay with their "
            "holders and are not allocated again after their release."
        ),
    )
    reason = fields.reason_field(label=_("Reason"))


def reserve(request: HttpRequest, pool: Pool) -> HttpResponse:
    pages.require(request, "pools.change_pool")
    form = ReserveForm(request.POST or None)
    form.fields["range"].widget.attrs["data-free"] = _free_url(pool)
    preview = None
    if request.method == "POST" and form.is_valid():
        span, reason = form.cleaned_data["range"], form.cleaned_data["reason"]
        with pages.errors_at_field(form, "range"):
            cidr = _cidr_of(pool, span)
            change = previews.reservation_change(pool, cidr, span)
            preview = previews.preview_change(pool, change, author=pages.author(request))
            if "_confirmed" in request.POST:
                pools.reserve(cidr.pk, span, author=pages.author(request, reason), reason=reason)
                return pages.done(
                    request, gettext("%(range)s is reserved.") % {"range": span}, pool
                )
    title = gettext("Reserve a range of %(pool)s") % {"pool": pool.name}
    return _small_form(request, pool, form, title=title, button=gettext("Reserve"), preview=preview)


def _cidr_of(pool: Pool, span: Any) -> PoolCIDR:
    for cidr in _cidrs(pool):
        if span.family == cidr.cidr.version and span.within(cidr.cidr):
            return cidr
    family = span.family in {cidr.cidr.version for cidr in _cidrs(pool)}
    cidrs = ", ".join(str(cidr) for cidr in _cidrs(pool)) or gettext("none")
    message = gettext("%(range)s is in no CIDR of the pool (%(cidrs)s)") % {
        "range": span,
        "cidrs": cidrs,
    }
    code = "range_outside_cidr" if family else "mixed_family"
    raise errors.InvalidInput.for_field("range", code, message, str(span))


def unreserve(request: HttpRequest, pool: Pool, range_id: int) -> HttpResponse:
    pages.require(request, "pools.change_pool")
    reserved = pool.reserved_ranges.filter(pk=range_id).first()
    if reserved is None:
        raise Http404(gettext("This range is no longer reserved."))
    if request.method == "POST":
        with pages.errors_as_messages(request):
            pools.unreserve(range_id, author=pages.author(request))
            messages.success(
                request, gettext("%(range)s is no longer reserved.") % {"range": reserved}
            )
        return HttpResponseRedirect(display.url_of(pool))
    effects = [
        gettext("Free blocks in this range can be allocated again. Holders keep their blocks.")
    ]
    if reserved.reason:
        text = gettext("Reason of the reservation: %(reason)s")
        effects.append(text % {"reason": reserved.reason})
    return pages.confirmation(
        request,
        pool,
        title=gettext("Remove the reserved range %(range)s?") % {"range": reserved},
        effects=effects,
        button=gettext("Remove"),
    )


class AddCidrForm(forms.Form):
    takes_cidrs = True
    cidr = fields.cidr_field(
        label="CIDR",
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="10.30.0.0/16"), 20),
        help_text=_("Blocks of this CIDR are allocated after those of the existing CIDRs."),
    )
    reserved = fields.RangesField(
        label=_("Reserved ranges"), help_text=_("Optional, one per line.")
    )


def add_cidr(request: HttpRequest, pool: Pool) -> HttpResponse:
    pages.require(request, "pools.change_pool")
    form = AddCidrForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        entry = CidrEntry(form.cleaned_data["cidr"], tuple(form.cleaned_data["reserved"]))
        accepted = form_fields.overlaps_accepted(form, [entry.cidr], overlaps.owner_of_pool(pool))
        with pages.errors_at_field(form, _cidr_field):
            if accepted:
                pools.add_cidr(pool.pk, entry, author=pages.author(request))
                return pages.done(
                    request,
                    gettext("%(cidr)s was added. Free blocks of %(pool)s: %(free)s.")
                    % {"cidr": entry.cidr, "pool": pool.name, "free": usage_bars.free_blocks(pool)},
                    pool,
                )
    return _small_form(
        request,
        pool,
        form,
        title=gettext("Add a CIDR to %(pool)s") % {"pool": pool.name},
        button=gettext("Add"),
        cidrs=_cidrs(pool),
    )


def _cidr_field(problem: errors.FieldProblem) -> str:
    return "reserved" if "range" in problem.code else "cidr"


def _cidrs(pool: Pool) -> list[PoolCIDR]:
    return list(pool.cidrs.select_related("pool__cluster"))


def _small_form(
    request: HttpRequest, pool: Pool, form: forms.Form, *, title: str, button: str, **more: Any
) -> HttpResponse:
    return pages.form_page(
        request, pool, form, title=title, template="pool_small_form.html", button=button, **more
    )
