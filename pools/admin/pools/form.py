"""The form of a pool: its settings, and its CIDRs with their reserved ranges as text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.core import addresses, blocks, dns_names, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Category, Event, Pool
from pools.platform.admin import attributes, forms as fields, pages, row_forms
from pools.register import overlaps, pool_cidrs, pools, previews

_PATH = re.compile(r"ipv([46])\.cidrs\.(\d{1,9})(.*)")
_FIXED = ("cluster", "name", "category", "allow_first_ip", "allow_last_ip")


def _parse_mask_size(text: str, family: int) -> int:
    digits = text.strip().removeprefix("/")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        message = gettext("Enter the mask size as a number.")
        raise errors.InvalidInput.for_field("mask_size", "mask_size", message, text)
    return blocks.check_mask_size(int(digits), family)


class CidrForm(forms.Form):
    cidr = fields.cidr_field(
        label="CIDR",
        required=False,
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="10.20.0.0/16"), 20),
    )
    reserved = fields.RangesField(label=_("Reserved ranges"))
    remove = forms.BooleanField(required=False, widget=fields.tick())

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if not values.get("cidr") and values.get("reserved") and "cidr" not in self.errors:
            self.add_error("cidr", gettext("Enter the CIDR that contains these ranges."))
        for span in values.get("reserved", ()) if values.get("cidr") else ():
            with pages.errors_at_field(self, "reserved"):
                addresses.require_within(span, values["cidr"])
        return values


CidrFormSet = forms.formset_factory(CidrForm, extra=2)
MoreCidrsFormSet = forms.formset_factory(CidrForm, extra=0)


@dataclass(frozen=True)
class Capacity:
    """The blocks of a family: as chosen, without and with the first and last addresses."""

    family: int
    chosen: int
    without: int
    with_both: int


class PoolForm(attributes.AttributeFields, row_forms.ObjectForm):
    """A pool, and the forms of its CIDRs as `cidrs`."""

    attributed = Pool
    takes_cidrs = True
    capacities: Sequence[Capacity] = ()  # of a new pool, before it is added
    preview: previews.Preview | None = None  # of a change that withholds or removes addresses
    cluster = cluster_fields.cluster_field()
    name = fields.name_field(label=_("Name"))
    category = forms.ChoiceField(
        label=_("Category"), choices=Category.choices, widget=fields.select()
    )
    mask_size_v4 = fields.ParsedField(
        partial(_parse_mask_size, family=4),
        label=_("IPv4 mask size"),
        required=False,
        widget=fields.text(placeholder="24", inputmode="numeric"),
        help_text=_(
            "Size of one block: 24 for a pod CIDR of 256 addresses, 32 for single "
            "addresses. Cannot be changed later."
        ),
    )
    mask_size_v6 = fields.ParsedField(
        partial(_parse_mask_size, family=6),
        label=_("IPv6 mask size"),
        required=False,
        widget=fields.text(placeholder="120", inputmode="numeric"),
        help_text=_("128 for single addresses. Cannot be changed later."),
    )
    cooldown_seconds = fields.DurationField(
        label=_("Cooldown"),
        help_text=_(
            "Time before a released block can be allocated to another holder. "
            "Empty: 30 days for nodes, 24 hours for instances and public IPv4, none "
            "for other pools."
        ),
    )
    description = fields.description_field()
    dns_pattern = fields.ParsedField(
        dns_names.parse_pattern,
        label=_("DNS names"),
        required=False,
        widget=fields.text(placeholder="{holder}.{cluster}.example.org"),
        help_text=_(
            "Pattern of the names of single addresses: {holder} and a domain, in which {cluster} may"
            " stand. A name that was set for an address comes first."
        ),
    )
    allow_first_ip = forms.BooleanField(
        label=_("Use the first address of each CIDR (network address)"),
        required=False,
        widget=fields.tick(),
        help_text=_(
            "Only for blocks of one address, and cannot be changed later. If off, the network address"
            " is skipped. A /30 without both yields 2 addresses."
        ),
    )
    allow_last_ip = forms.BooleanField(
        label=_("Use the last address of each CIDR (broadcast address)"),
        required=False,
        widget=fields.tick(),
        help_text=_(
            "IPv4 only, and cannot be changed later. Leave it off where hosts share the CIDR as one"
            " subnet; use it for addresses that are routed one by one."
        ),
    )

    class Meta:
        model = Pool
        fields = _FIXED

    def __init__(self, data: QueryDict | None = None, *args: Any, **options: Any) -> None:
        super().__init__(data, *args, **options)
        if self.row is None:
            cidr = self.initial.get("cidr", "")
            self.cidrs = CidrFormSet(data, initial=[{"cidr": cidr}] if cidr else [], prefix="cidrs")
            return
        self.cidrs = MoreCidrsFormSet(data, initial=_cidrs(self.row), prefix="cidrs")
        tables = ("poolcidrevent", "reservedrangeevent")
        events = Event.objects.filter(pool_id=self.row.pk, table__in=tables).order_by("-id")
        self._events = {"CIDRs": events}
        # What cannot be changed.
        sizes = [f"mask_size_v{f}" for f in (4, 6) if self.row.mask_size(f) is not None]
        for field in (
            *(self.fields[name] for name in (*_FIXED, *sizes)),
            *(row.fields["cidr"] for row in self.cidrs.initial_forms),
        ):
            field.disabled, field.help_text = True, ""

    def shown_values(self, row: Pool) -> dict[str, Any]:
        """Return the values of the form, with the CIDRs of its other forms as one text."""
        cidrs = [f"{cidr['cidr']} ({cidr['reserved']})" for cidr in _cidrs(row)]
        return {
            **super().shown_values(row),
            "cooldown_seconds": cooldown_text(row.cooldown_seconds),
            "CIDRs": "; ".join(cidrs),
        }

    def is_valid(self) -> bool:
        """Return False, without an error, for a preview of the capacity, for overlaps that nobody accepted
        yet, and for a loss of addresses that nobody confirmed.
        """
        pool_valid, cidrs_valid = super().is_valid(), self.cidrs.is_valid()
        if not (pool_valid and cidrs_valid and self._families_fit()):
            return False
        ready = self._overlaps_accepted() and "_preview" not in self.data
        try:
            if self.row is None and not ready:
                self.capacities = self._count_capacities()
            if self.row is not None and ready and "_confirmed" not in self.data:
                preview = previews.preview_change(
                    self.row,
                    pools.PoolChange(**self.settings()),
                    author=pages.author(self.request),
                    version=self.check_version,
                )
                self.preview = preview if preview.withholds else None
        except errors.IpamError as error:
            self.add_errors(error)
        return ready and self.preview is None and not self.errors and self.cidrs.is_valid()

    def _families_fit(self) -> bool:
        for row in self._rows():
            cidr = row.cleaned_data["cidr"]
            if self.cleaned_data[f"mask_size_v{cidr.version}"] is None:
                name = f"mask_size_v{cidr.version}"
                if not self.has_error(name):
                    self.add_error(
                        name,
                        gettext("Enter the IPv%(family)s mask size: %(cidr)s requires it.")
                        % {"family": cidr.version, "cidr": cidr},
                    )
        return not self.errors

    def _rows(self) -> list[forms.Form]:
        """Return the forms of the CIDRs that the pool is to have."""
        return [
            row
            for row in self.cidrs.forms
            if row.cleaned_data.get("cidr") and not row.cleaned_data.get("remove")
        ]

    def families(self) -> dict[int, Family]:
        """Return the CIDRs and mask sizes by IP family, as the services expect them."""
        families = {}
        for family in (4, 6):
            mask_size = self.cleaned_data[f"mask_size_v{family}"]
            if mask_size is not None:
                entries = (
                    CidrEntry(row.cleaned_data["cidr"], tuple(row.cleaned_data["reserved"]))
                    for row in self._rows()
                    if row.cleaned_data["cidr"].version == family
                )
                families[family] = Family(tuple(entries), mask_size)
        return families

    def _count_capacities(self) -> list[Capacity]:
        """Return the capacity of each family, before the pool is added."""
        values = self.cleaned_data
        first, last = values["allow_first_ip"], values["allow_last_ip"]
        return [
            Capacity(
                number,
                chosen=_block_count(family, first=first, last=last),
                without=_block_count(family, first=False, last=False),
                with_both=_block_count(family, first=True, last=True),
            )
            for number, family in self.families().items()
        ]

    def settings(self) -> dict[str, Any]:
        """Return what can be changed, as the arguments of `pools.create` and of a `PoolChange`."""
        values = self.cleaned_data
        return {
            "families": self.families(),
            "cooldown_seconds": values["cooldown_seconds"],
            "description": values["description"] or "",
            "dns_pattern": values["dns_pattern"] or "",
            **self.attributes(),
        }

    def fixed_values(self) -> dict[str, Any]:
        """Return what only a new pool takes, as the arguments of `pools.create`."""
        return {name: self.cleaned_data[name] for name in _FIXED}

    def _overlaps_accepted(self) -> bool:
        """Return False if CIDRs that the pool does not have yet overlap others, and the user did not accept it."""
        present = {row["cidr"] for row in _cidrs(self.row)} if self.row else set()
        cidrs = [row.cleaned_data["cidr"] for row in self._rows()]
        values = self.cleaned_data
        owner = (
            overlaps.owner_of_pool(self.row)
            if self.row
            else overlaps.owner_of_new_pool(values["cluster"], values["category"])
        )
        new = [cidr for cidr in cidrs if str(cidr) not in present]
        return cluster_fields.overlaps_accepted(self, new, owner)

    def add_errors(self, error: errors.IpamError) -> None:
        """Add the problems of a service's error to the fields that they are about."""
        for problem in pages.problems(error):
            form, field = self._field_of_problem(problem)
            form.add_error(
                field if field in form.fields else None, fields.validation_error(problem)
            )

    def _field_of_problem(self, problem: errors.FieldProblem) -> tuple[forms.BaseForm, str]:
        path = _PATH.fullmatch(problem.field)
        if path is None:
            row = self._row_mentioned_in(problem.message)
            if row is not None:
                return row, "reserved" if _is_about_range(problem) else "cidr"
            return self, _FORM_FIELDS.get(problem.field, problem.field)
        family = int(path[1])
        if problem.code == "mask_size" and self.row is None:
            return self, f"mask_size_v{family}"
        rows = [row for row in self._rows() if row.cleaned_data["cidr"].version == family]
        return rows[int(path[2])], "reserved" if _is_about_range(problem) else "cidr"

    def _row_mentioned_in(self, message: str) -> forms.Form | None:
        """Return the row whose CIDR the message names first."""
        positions = [
            (message.index(str(row.cleaned_data["cidr"])), number)
            for number, row in enumerate(self.cidrs.forms)
            if row.cleaned_data.get("cidr") and str(row.cleaned_data["cidr"]) in message
        ]
        return self.cidrs.forms[min(positions)[1]] if positions else None


def _block_count(family: Family, *, first: bool, last: bool) -> int:
    """Return the number of blocks that the CIDRs of a family have, less the reserved ones."""
    layouts = (
        (blocks.Layout(entry.cidr, family.mask_size, first, last), entry.reserved)
        for entry in family.cidrs
    )
    return sum(blocks.total(layout.allocatable(reserved)) for layout, reserved in layouts)


_FORM_FIELDS = {
    "ipv4": "mask_size_v4",
    "ipv4.mask_size": "mask_size_v4",
    "ipv6.mask_size": "mask_size_v6",
}


def _is_about_range(problem: errors.FieldProblem) -> bool:
    return "range" in problem.code or "reserved" in problem.field


def cooldown_text(seconds: int) -> str:
    """Return the cooldown as the form parses it, in the largest unit without remainder: `2 days`."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit if count > 1 else unit[:-1]}"
    return str(seconds)


def _cidrs(pool: Pool) -> list[dict[str, str]]:
    return [
        {"cidr": str(entry.cidr), "reserved": "\n".join(str(span) for span in entry.reserved)}
        for _, family in sorted(pool_cidrs.families(pool).items())
        for entry in family.cidrs
    ]
