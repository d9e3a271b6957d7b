"""The form that connects a cluster: by API server, CA and token, or by a kubeconfig.

Credentials are never shown again after they were entered. If the form is shown again (a context to choose, an
error in another field), the page holds them encrypted with the key ring and bound to this user, session and cluster.
"""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _
from unfold import widgets

from pools.clusters import connection_test, connections, other_writers
from pools.clusters.client import kubeconfig
from pools.core import errors
from pools.models import Cluster, ManagedResource, Mode
from pools.platform.admin import forms as fields, pages, row_forms
from pools.platform.outbound import faults, secrets

# What the labels of the model do not say: whose place Cadastre takes.
_INSTEAD_OF = {
    ManagedResource.POD_CIDRS: _("PodCIDRs of CiliumNodes, in the place of Cilium's operator"),
    ManagedResource.CLAIMS: _("status of IPAMClaims, in the place of OVN-Kubernetes"),
}
# By the code of a fault of the connection: the field of a token's form that shows it, and what happened.
_FAULTS = {
    faults.Unreachable.code: ("server", _("The API server cannot be reached")),
    faults.TLSRefused.code: ("ca", _("No TLS connection that can be trusted")),
    faults.Unauthorized.code: ("token", _("The API server does not accept the credentials (401)")),
    faults.Forbidden.code: ("token", _("A right is missing")),
}
_EXPIRED = _("The credentials of the previous step are no longer available. Enter it again.")


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
    server = forms.CharField(
        label=_("API server"),
        required=False,
        widget=fields.text(placeholder="https://api.prod.example:6443", autocomplete="off"),
    )
    ca = forms.CharField(
        label=_("CA certificate"),
        required=False,
        strip=False,
        widget=fields.lines(3, autocomplete="off"),
        help_text=_(
            "PEM, or the base64 of a kubeconfig. Empty: the system's certificate authorities."
        ),
    )
    token = forms.CharField(
        label=_("Token"),
        required=False,
        widget=fields.lines(3, autocomplete="off", **{"data-secret": ""}),
        help_text=_("Stored encrypted and never shown again."),
    )
    text = forms.CharField(
        label=_("Kubeconfig"),
        required=False,
        strip=False,
        widget=fields.lines(3, autocomplete="off", **{"data-secret": ""}),
        help_text=_(
            "Instead of the three fields above: server, certificate authority, and a token or client certificate"
            " (kubectl config view --raw --flatten). exec plugins, file references and proxies are not supported."
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
        "server", "ca", "token", "text", "file", "context", "mode", "managed_resources",
        "confirm_other_writer", "offline",
    )  # fmt: skip

    def __init__(self, *args: Any, request: HttpRequest, cluster: Cluster, **options: Any) -> None:
        super().__init__(*args, **options)
        self._owner = f"form:{request.user.pk}:{request.session.session_key}:{cluster.pk}"
        self.source: connections.ConnectionSource | None = None
        self.source_field = "text"  # the field that shows what is wrong with the source as a whole
        self.held = ""  # the encrypted kubeconfig or token, for the next submit
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
        # Credentials never go back to the page, also when other fields are invalid.
        typed: Any = self.data
        held = self._open_held()
        self._typed: Any = typed.copy()  # a QueryDict, which is immutable
        self._typed["text"] = self._typed["token"] = ""
        self.data = self._typed
        try:
            content = self._read_content(values, held)
            if content is not None:
                self._select_context(content)
            elif any(values.get(name, "").strip() for name in ("server", "ca", "token")):
                self._read_token(values, held)
            elif "text" not in self.errors and "file" not in self.errors:
                message = gettext("Enter the API server and a token, or a kubeconfig.")
                self.add_error("server", forms.ValidationError(message, code="required"))
        except errors.IpamError as error:
            pages.add_errors(self, _prefix_paths(error), lambda _problem: "text")
        return values

    def _open_held(self) -> dict[str, str]:
        """Return the kubeconfig (`text`) or the token that the page holds encrypted."""
        if not self.data.get("held"):
            return {}
        try:
            opened = secrets.key_ring().open(self.data["held"], owner=self._owner)
        except faults.SecretUnreadable:
            self.add_error("text", forms.ValidationError(_EXPIRED, code="required"))
            return {}
        result: dict[str, str] = json.loads(opened)
        return result

    def _hold(self, **values: str) -> None:
        self.held = secrets.key_ring().seal(json.dumps(values).encode(), owner=self._owner)

    def _read_content(self, values: dict[str, Any], held: dict[str, str]) -> bytes | None:
        """Return the kubeconfig: a new one, or the one that is held unless the fields of a token are filled in."""
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
        return held["text"].encode() if "text" in held and not values.get("server") else None

    def _read_token(self, values: dict[str, Any], held: dict[str, str]) -> None:
        """Make the source of server, CA and token; an error is at its field."""
        self.source_field = "server"
        token = values.get("token") or held.get("token", "")
        if not token:
            message = gettext("Enter the token of the service account.")
            self.add_error("token", forms.ValidationError(message, code="required"))
            return
        self._hold(token=token)
        with pages.errors_at_field(self):
            self.source = connections.from_token(values["server"], values["ca"], token)

    def add_fault(self, examination: connection_test.ConnectionTest) -> None:
        """Show the error that ended the test of the connection at the field that it is about."""
        field, sentence = _FAULTS.get(examination.code, (self.source_field, ""))
        message = pages.sentence(
            f"{sentence}: {examination.message}" if sentence else examination.message
        )
        is_by_token = self.source_field == "server"
        self.add_error(
            field if is_by_token else "text", forms.ValidationError(message, code=examination.code)
        )

    def _select_context(self, content: bytes) -> None:
        """Parse the kubeconfig and select its context. Raises InvalidInput."""
        self.contexts, current = kubeconfig.contexts(content)
        self._set_context_choices(current)
        chosen = self.data.get("context", "")
        if chosen not in self.contexts:
            chosen = self.contexts[0] if len(self.contexts) == 1 else ""
        if not chosen and self.contexts:
            self._hold(text=content.decode())
            self._typed["context"] = current
            message = gettext(
                "The kubeconfig has several contexts. Choose the one of this cluster."
            )
            self.add_error("context", forms.ValidationError(message, code="context_missing"))
            return
        self.source = connections.from_kubeconfig(content, context=chosen)
        self._hold(text=content.decode())

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


def field_of_problem(problem: errors.FieldProblem) -> str:
    """Return the field that shows an error of the service; "" for those of the source."""
    if problem.code == other_writers.FOUND:
        return "confirm_other_writer"
    return problem.field if problem.field in {"mode", "managed_resources"} else ""
