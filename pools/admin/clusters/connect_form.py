"""The form that connects a cluster. The kubeconfig is never shown again after it was entered.

If the form is shown again (a context to choose, an error in another field), the page holds the
kubeconfig encrypted with the key ring and bound to this user, session and cluster.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from pools.clusters import connections, other_writers
from pools.clusters.client import kubeconfig
from pools.core import errors
from pools.models import Cluster
from pools.models.connections import ManagedResource, Mode
from pools.platform.admin import forms as fields
from pools.platform.admin import pages, row_forms
from pools.platform.outbound import faults, secrets

# What the labels of the model do not say: whose place Cadastre takes.
_INSTEAD_OF = {
    ManagedResource.POD_CIDRS: _("PodCIDRs of CiliumNodes, in the place of Cilium's operator"),
    ManagedResource.CLAIMS: _("status of IPAMClaims, in the place of OVN-Kubernetes"),
}
_EXPIRED = _("The kubeconfig of the previous step is no longer available. Enter it again.")


class TermsForm(row_forms.RowForm):
    """The mode and the managed resources of a cluster."""

    mode = forms.ChoiceField(
        label=_("Mode"),
        choices=[
            (Mode.OBSERVED, _("Read-only: Cadastre writes nothing to the cluster")),
            (Mode.MANAGED, _("Managed: Cadastre writes the resources selected below")),
        ],
        initial=Mode.OBSERVED,
        widget=fields.select(),
    )
    managed_resources = forms.MultipleChoiceField(
        label=_("Managed resources"),
        choices=[(item.value, _INSTEAD_OF.get(item, item.label)) for item in ManagedResource],
        required=False,
        widget=forms.CheckboxSelectMultiple(),
        help_text=_("Used in managed mode only. You can change the selection at any time."),
    )

    confirm_other_writer = forms.BooleanField(
        label=_("Switch on although another controller writes the same"),
        required=False,
        widget=fields.tick(),
        help_text=_(
            "Needed only where Cilium's operator writes PodCIDRs, or OVN-Kubernetes answers IPAMClaims: the message"
            " says what can happen."
        ),
    )

    terms = connections.Terms()

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        try:
            self.terms = connections.parse_terms(
                values.get("mode") or "", values.get("managed_resources") or ()
            )
        except errors.InvalidInput as error:
            pages.add_errors(self, error)
        return values


class ConnectForm(TermsForm):
    text = forms.CharField(
        label=_("Kubeconfig"),
        required=False,
        strip=False,
        widget=fields.lines(8, autocomplete="off", **{"data-secret": ""}),
        help_text=_(
            "Must contain the server, its certificate authority, and a token or a "
            "client certificate (kubectl config view --raw --flatten). exec "
            "plugins, file references and proxies are not supported. Stored "
            "encrypted and never shown again."
        ),
    )
    file = forms.FileField(
        label=_("Kubeconfig file"),
        required=False,
        widget=widgets.UnfoldAdminFileFieldWidget(),
    )
    context = forms.CharField(label=_("Context"), required=False, widget=fields.select())
    offline = forms.BooleanField(
        label=_("Skip connection test"),
        required=False,
        widget=fields.tick(),
        help_text=_("The cluster is identified at the first sync."),
    )
    field_order = (
        "text", "file", "context", "mode", "managed_resources", "confirm_other_writer", "offline",
    )  # fmt: skip

    def __init__(self, *args: Any, request: HttpRequest, cluster: Cluster, **options: Any) -> None:
        super().__init__(*args, **options)
        self._owner = f"form:{request.user.pk}:{request.session.session_key}:{cluster.pk}"
        self.source: connections.ConnectionSource | None = None
        self.held = ""  # the encrypted kubeconfig, for the next submit
        self.contexts: list[str] = []

    @classmethod
    def for_replacement(cls, *args: Any, **options: Any) -> ConnectForm:
        """Return a form for the credentials only; mode and managed resources are kept."""
        form = cls(*args, **options)
        for name in TermsForm.base_fields:
            del form.fields[name]
        return form

    def clean(self) -> dict[str, Any]:
        if "mode" in self.fields:
            super().clean()
        values = self.cleaned_data
        content = self._read_content(values)
        # The kubeconfig never goes back to the page, also when other fields are invalid.
        typed: Any = self.data
        self._typed: Any = typed.copy()  # a QueryDict, which is immutable
        self._typed["text"] = ""
        self.data = self._typed
        if content is not None:
            try:
                self._select_context(content)
            except errors.IpamError as error:
                pages.add_errors(self, _prefix_paths(error), lambda _problem: "text")
        return values

    def _read_content(self, values: dict[str, Any]) -> bytes | None:
        file = values.get("file")
        if file is not None and file.size > kubeconfig.LARGEST:
            message = gettext("The kubeconfig is larger than %(limit)s KiB.") % {
                "limit": kubeconfig.LARGEST // 1024
            }
            self.add_error("file", forms.ValidationError(message, code="too_large"))
            return None
        if file is not None:
            return bytes(file.read())
        if values.get("text", "").strip():
            return str(values["text"]).encode()
        if held := self.data.get("held", ""):
            try:
                return secrets.key_ring().open(held, owner=self._owner)
            except faults.SecretUnreadable:
                self.add_error("text", forms.ValidationError(_EXPIRED, code="required"))
                return None
        message = gettext("Paste a kubeconfig here, or choose a file.")
        self.add_error("text", forms.ValidationError(message, code="required"))
        return None

    def _select_context(self, content: bytes) -> None:
        """Parse the kubeconfig and select its context. Raises InvalidInput."""
        self.contexts, current = kubeconfig.contexts(content)
        self._set_context_choices(current)
        chosen = self.data.get("context", "")
        if chosen not in self.contexts:
            chosen = self.contexts[0] if len(self.contexts) == 1 else ""
        if not chosen and self.contexts:
            self.held = secrets.key_ring().seal(content, owner=self._owner)
            self._typed["context"] = current
            message = gettext(
                "The kubeconfig has several contexts. Choose the one of this cluster."
            )
            self.add_error("context", forms.ValidationError(message, code="context_missing"))
            return
        self.source = connections.from_kubeconfig(content, context=chosen)
        self.held = secrets.key_ring().seal(content, owner=self._owner)

    def _set_context_choices(self, current: str) -> None:
        field: Any = self.fields["context"]
        field.widget.choices = [(name, errors.display_value(name)) for name in self.contexts]
        field.initial = current


def _prefix_paths(error: errors.IpamError) -> errors.IpamError:
    """Return the error with the path in the kubeconfig before each message."""
    return errors.InvalidInput.all(
        [
            errors.FieldProblem(
                "",
                problem.code,
                f"{problem.field}: {problem.message}" if problem.field else problem.message,
            )
            for problem in pages.problems(error)
        ]
    )


def field_of_problem(problem: errors.FieldProblem) -> str | None:
    """Return the field that shows an error of the service; errors of the source are shown at `text`."""
    if problem.code == other_writers.FOUND:
        return "confirm_other_writer"
    return problem.field if problem.field in {"mode", "managed_resources"} else "text"
