"""The form of the DNS name of a held address."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.core import demand, dns_names, errors
from pools.models import Block
from pools.platform.admin import display, pages
from pools.platform.admin import forms as fields
from pools.register.dns import names


class DNSNameForm(forms.Form):
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


def edit(request: HttpRequest, block: Block) -> HttpResponse:
    """Show and save the form."""
    initial = {
        "dns_name": names.name_of(block),
        "kind": block.holder_kind,
        "holder": block.holder_id,
    }
    form = DNSNameForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        holder = demand.Holder(values["kind"], values["holder"])
        try:
            name = values["dns_name"] or ""
            names.set_name(block.pk, name, author=pages.author(request), holder=holder)
        except errors.IpamError as error:
            pages.add_errors(form, error)
        else:
            messages.success(request, gettext("The DNS name was saved."))
            return HttpResponseRedirect(display.url_of(block))
    return pages.page(
        request,
        "edit_form.html",
        title=gettext("DNS name of %(address)s") % {"address": display.plain_cidr(block.cidr)},
        opts=Block._meta,
        original=block,
        form=form,
        button=gettext("Save"),
        back=display.url_of(block),
    )
