"""What is done with a pool: make, change, delete, allocate, reserve, add a CIDR."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from pools.admin.pools import form as pool_form
from pools.core import errors
from pools.core.cilium.podippool import CidrEntry
from pools.models import AllocationRequest, Pool, PoolCIDR
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields
from pools.register import pools, previews, usage
from pools.register.allocator import allocation, requests

KINDS = ("instance", "node", "env", "vm")
_KIND_OF = {"pod": "node", "node": "node", "instance": "instance", "ipv4": "env", "vm": "vm"}


# --- make and change ------------------------------------------------------------------------------


def add(request: HttpRequest) -> HttpResponseBase:
    pages.require(request, "pools.add_pool")
    initial = {name: request.GET[name] for name in ("cluster", "category") if name in request.GET}
    pool_forms = pool_form.PoolForms(None, request.POST or None, initial)
    if request.method == "POST" and pool_forms.is_valid():
        try:
            pool = pools.create(pool_forms.spec(), author=pages.author(request))
        except errors.IpamError as error:
            pool_forms.add_errors(error)
        else:
            messages.success(request, f"{pool.name} has {_free(pool)}.")
            return HttpResponseRedirect(display.url_of(pool))
    return _form_page(request, pool_forms, title="Add pool")


def _free(pool: Pool) -> str:
    families = usage.of_pool(pool)
    parts = (
        f"{display.digits(counts.free)} free IPv{family} blocks"
        for family, counts in families.items()
    )
    return " and ".join(parts)


def edit(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    """The form; before something is withheld or removed, a page that says what it would do."""
    pages.require(request, "pools.change_pool")
    pool_forms = pool_form.PoolForms(pool, request.POST or None)
    if request.method == "POST" and pool_forms.is_valid():
        version = pool_forms.form.cleaned_data["version"]
        try:
            preview = previews.of_change(
                pool, pool_forms.change(), author=pages.author(request), version=version
            )
            if preview.withholds and "_confirmed" not in request.POST:
                return _confirm_page(request, pool, preview)
            pools.change(
                pool.pk, pool_forms.change(), author=pages.author(request), version=version
            )
        except errors.IpamError as error:
            pool_forms.add_errors(error)
        else:
            messages.success(request, f"{pool.name} was changed.")
            return HttpResponseRedirect(display.url_of(pool))
    return _form_page(request, pool_forms, title=f"Edit {pool.name}")


def _form_page(
    request: HttpRequest, pool_forms: pool_form.PoolForms, *, title: str
) -> HttpResponseBase:
    return pages.page(
        request,
        "pool_form.html",
        title=title,
        opts=Pool._meta,
        original=pool_forms.pool,
        pool=pool_forms.pool,
        form=pool_forms.form,
        cidrs=pool_forms.cidrs,
        invalid=pool_forms.form.is_bound
        and (pool_forms.form.errors or any(pool_forms.cidrs.errors)),
    )


def _confirm_page(request: HttpRequest, pool: Pool, preview: previews.Preview) -> HttpResponseBase:
    posted_values = [
        (name, value)
        for name, values in request.POST.lists()
        if name not in {"csrfmiddlewaretoken", "_back"}
        for value in values
    ]
    return pages.page(
        request,
        "pool_confirm.html",
        title=f"Change {pool.name}?",
        opts=Pool._meta,
        original=pool,
        pool=pool,
        preview=preview,
        posted_values=posted_values,
    )


def delete(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    pages.require(request, "pools.delete_pool")
    if request.method == "POST":
        with pages.told(request):
            pools.delete(pool.pk, author=pages.author(request))
            messages.success(request, f"{pool.name} was deleted.")
            return HttpResponseRedirect(reverse("admin:pools_pool_changelist"))
    holders = [block for cidr in _cidrs(pool) for block in pools.in_use(cidr)[:12]]
    return pages.page(
        request,
        "pool_delete.html",
        title=f"Delete {pool.name}?",
        opts=Pool._meta,
        original=pool,
        pool=pool,
        cidrs=_cidrs(pool),
        families=usage.of_pools([pool])[pool.pk],
        holders=holders[:12],
        waiting=AllocationRequest.objects.filter(pool=pool, state="pending").count(),
    )


def _cidrs(pool: Pool) -> list[PoolCIDR]:
    return list(pool.cidrs.select_related("pool__cluster"))


# --- allocate -------------------------------------------------------------------------------------


class AllocateForm(forms.Form):
    kind = fields.identifier_field(
        label="Kind of holder",
        max_length=63,
        widget=fields.text(list="holder-kinds"),
        help_text="node, instance, env, vm, or a kind of your own.",
    )
    id = fields.identifier_field(label="Name of the holder")
    org = fields.identifier_field(label="Organisation", required=False)
    env = fields.identifier_field(label="Environment", required=False)
    family = forms.ChoiceField(required=False, widget=fields.select())
    exact = fields.block_field(
        label="Exact address or block",
        required=False,
        help_text="Empty: the next free one in the order of addresses.",
    )
    wait = forms.BooleanField(
        label="Wait when the pool has none left",
        required=False,
        widget=fields.tick(),
        help_text="Leaves a pending request, which is tried again as soon as space is released.",
    )

    def __init__(self, pool: Pool, data: Any, *, exact: str) -> None:
        initial = {"kind": _KIND_OF[pool.category], "exact": exact}
        if exact:
            initial["family"] = "6" if ":" in exact else "4"
        super().__init__(data, initial=initial)
        families = [family for family in (4, 6) if pool.mask_size(family) is not None]
        choices = [(str(family), f"IPv{family}") for family in families]
        if len(families) > 1:
            choices.insert(0, ("", "IPv4 and IPv6"))
        self.fields["family"].choices = choices  # type: ignore[attr-defined]

    def demand(self) -> allocation.BlockDemand:
        values = self.cleaned_data
        return allocation.BlockDemand(
            holders=(allocation.Holder(values["kind"], values["id"]),),
            families=(int(values["family"]),) if values["family"] else (),
            org=values["org"] or "",
            env=values["env"] or "",
            cidr=values["exact"],
        )


def allocate(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    pages.require(request, "pools.allocate")
    exact = request.GET.get("exact", "")[:64]
    form = AllocateForm(pool, request.POST or None, exact=exact)
    if request.method == "POST" and form.is_valid():
        try:
            result = requests.allocate(
                pool.pk,
                form.demand(),
                author=pages.author(request),
                wait=form.cleaned_data["wait"],
            )
        except errors.IpamError as error:
            pages.put(form, error, _allocate_field)
        else:
            _report_result(request, result)
            return HttpResponseRedirect(display.url_of(pool))
    return _small_form(
        request,
        pool,
        form,
        title=f"Allocate from {pool.name}",
        button="Allocate",
        families=usage.of_pools([pool])[pool.pk],
        kinds=KINDS,
    )


def _report_result(request: HttpRequest, result: allocation.Allocation | AllocationRequest) -> None:
    if isinstance(result, AllocationRequest):
        messages.warning(request, f"No block is left: request {result.pk} waits for one.")
        return
    verb = "got" if result.status == 201 else "already holds"
    for block in result.blocks:
        address = block["address"] or block["cidr"]
        messages.success(request, f"{block['holder']['id']} {verb} {address}.")


_EXACT = {"already_allocated", "cooling_down", "reserved_address", "not_a_block", "outside_pool"}


def _allocate_field(problem: errors.FieldProblem) -> str | None:
    if problem.code in _EXACT or problem.field.startswith("cidr"):
        return "exact"
    return {"holder.kind": "kind", "holder.id": "id"}.get(problem.field, problem.field)


# --- reserve, add a CIDR --------------------------------------------------------------------------


class ReserveForm(forms.Form):
    range = fields.range_field(
        widget=fields.addresses_text(placeholder="10.20.0.0-10.20.0.99"),
        help_text="First and last address, or a whole CIDR. What is in use there stays with its"
        " holder and is not handed out again after its release.",
    )
    reason = fields.reason_field()


def reserve(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    pages.require(request, "pools.change_pool")
    form = ReserveForm(request.POST or None)
    preview = None
    if request.method == "POST" and form.is_valid():
        span, reason = form.cleaned_data["range"], form.cleaned_data["reason"]
        try:
            cidr = _cidr_of(pool, span)
            change = previews.reserving(pool, cidr, span)
            preview = previews.of_change(pool, change, author=pages.author(request))
            if "_confirmed" in request.POST:
                pools.reserve(cidr.pk, span, author=pages.author(request, reason), reason=reason)
                messages.success(request, f"{span} is reserved.")
                return HttpResponseRedirect(display.url_of(pool))
        except errors.IpamError as error:
            pages.put(form, error, lambda _problem: "range")
    title = f"Reserve a range of {pool.name}"
    return _small_form(request, pool, form, title=title, button="Reserve", preview=preview)


def _cidr_of(pool: Pool, span: Any) -> PoolCIDR:
    for cidr in _cidrs(pool):
        if span.family == cidr.cidr.version and span.within(cidr.cidr):
            return cidr
    family = span.family in {cidr.cidr.version for cidr in _cidrs(pool)}
    cidrs = ", ".join(str(cidr) for cidr in _cidrs(pool)) or "none"
    message = f"{span} lies in no CIDR of the pool ({cidrs})"
    code = "range_outside_cidr" if family else "mixed_family"
    raise errors.InvalidInput.for_field("range", code, message, str(span))


def unreserve(request: HttpRequest, pool: Pool, range_id: int) -> HttpResponseBase:
    pages.require(request, "pools.change_pool")
    reserved = pool.reserved_ranges.filter(pk=range_id).first()
    if request.method == "POST" and reserved is not None:
        with pages.told(request):
            pools.unreserve(range_id, author=pages.author(request))
            messages.success(request, f"{reserved} may be handed out again.")
        return HttpResponseRedirect(display.url_of(pool))
    return pages.page(
        request,
        "range_delete.html",
        title="Remove a reserved range?",
        opts=Pool._meta,
        original=pool,
        pool=pool,
        reserved=reserved,
        status=200 if reserved else 404,
    )


class AddCidrForm(forms.Form):
    cidr = fields.cidr_field(
        label="CIDR",
        widget=fields.addresses_text(placeholder="10.30.0.0/16"),
        help_text="Its blocks are handed out after those of the CIDRs before it.",
    )
    reserved = fields.RangesField(label="Reserved ranges", help_text="One in a line, if any.")


def add_cidr(request: HttpRequest, pool: Pool) -> HttpResponseBase:
    pages.require(request, "pools.change_pool")
    form = AddCidrForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        entry = CidrEntry(form.cleaned_data["cidr"], tuple(form.cleaned_data["reserved"]))
        try:
            pools.add_cidr(pool.pk, entry, author=pages.author(request))
        except errors.IpamError as error:
            pages.put(form, error, _cidr_field)
        else:
            messages.success(request, f"{entry.cidr} was added; {pool.name} has {_free(pool)}.")
            return HttpResponseRedirect(display.url_of(pool))
    return _small_form(
        request, pool, form, title=f"Add a CIDR to {pool.name}", button="Add", cidrs=_cidrs(pool)
    )


def _cidr_field(problem: errors.FieldProblem) -> str:
    return "reserved" if "range" in problem.code else "cidr"


def _small_form(
    request: HttpRequest, pool: Pool, form: forms.Form, *, title: str, button: str, **more: Any
) -> HttpResponseBase:
    return pages.page(
        request,
        "pool_small_form.html",
        title=title,
        opts=Pool._meta,
        original=pool,
        pool=pool,
        form=form,
        button=button,
        **more,
    )
