"""The forms of django-allauth with what it leaves open (MFA_FORMS): limits, codes that are good once, exact origins.

Failed attempts count for account and address in the database, for all processes. A passkey is accepted from the
exact origin of this site, with a counter that grows.
"""

import logging
import re
import struct
import time
from typing import Any, ClassVar, cast

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import forms as base_forms
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn import forms as webauthn_forms
from allauth.mfa.webauthn.internal import auth as webauthn
from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _

from claims.access import cluster_owners
from ipam_site.http import problems
from ipam_site.sign_on import gate
from pools.platform import events, login_limits, second_factor
from pools.platform.admin import forms as fields
from pools.platform.outbound import faults

_CODE_SECONDS = 90  # a code of an app is good for one step before and after its own
# What fido2 and allauth raise for what they cannot read, or do not accept.
_UNREADABLE = (
    ValidationError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    RuntimeError,
    struct.error,
)

log = logging.getLogger(__name__)


def _author(user: User, reason: str = "") -> events.Author:
    """Return the user, who may not be signed in yet, as the author of what a sign-in changes."""
    request_id = context.request.META.get(problems.REQUEST_ID, "")
    return events.Author(user.get_username(), "sign-on", request_id, reason)


# --- codes ----------------------------------------------------------------------------------------


class _Code:
    user: Any
    authenticator: Any
    cleaned_data: dict[str, Any]

    def clean_code(self) -> str:
        attempt = gate.count_attempt(context.request, self.user.get_username())
        with events.recorded_by(_author(self.user)):
            is_right = self._verify()
        if not is_right:
            raise get_adapter().validation_error("incorrect_code")
        login_limits.record_success(attempt)
        return str(self.cleaned_data["code"])

    def _verify(self) -> bool:
        """Return False for a code that is wrong, or came too soon after a wrong one: each doubles the time to the next."""
        rows = Authenticator.objects.filter(user_id=self.user.pk)
        row = rows.select_for_update().filter(type=Authenticator.Type.RECOVERY_CODES).first()
        if row is None or time.time() < row.data.get("next_at", 0):
            return False
        form: Any = super()
        try:
            with transaction.atomic():
                code = form.clean_code()
                if self.authenticator.type == Authenticator.Type.TOTP:
                    use_up(self.authenticator, code)
        except faults.SecretUnreadable as error:
            log.error("the second factor of %s cannot be read: %s", self.user, error.code)  # noqa: TRY400
            return False
        except ValidationError:
            failures = row.data.get("failures", 0) + 1
            row.data |= {"failures": failures, "next_at": time.time() + 2 ** min(failures - 1, 20)}
            row.save(update_fields=["data"])
            return False
        row.refresh_from_db()  # a recovery code was used up in it
        row.data |= {"failures": 0, "next_at": 0}
        row.save(update_fields=["data"])
        return True


def use_up(authenticator: Authenticator, code: str) -> None:
    """Record a code of an app that was right. Raises ValidationError if it was used before, by whichever process."""
    code, now = re.sub(r"\D", "", code), time.time()
    row = Authenticator.objects.select_for_update().get(pk=authenticator.pk)
    used = {old: until for old, until in row.data.get("used", {}).items() if until > now}
    if code in used:
        raise get_adapter().validation_error("incorrect_code")
    row.data["used"] = {**used, code: now + _CODE_SECONDS}
    row.save(update_fields=["data"])


def _code_field() -> forms.CharField:
    widget = fields.text(autocomplete="one-time-code", autofocus="autofocus")
    help_text = _("Six digits of your authenticator app, or a recovery code.")
    return forms.CharField(label=_("Code"), max_length=40, widget=widget, help_text=help_text)


class CodeForm(_Code, base_forms.AuthenticateForm):
    code = _code_field()


class CodeAgainForm(_Code, base_forms.ReauthenticateForm):
    code = _code_field()


# --- passkeys -------------------------------------------------------------------------------------


class CredentialField(forms.JSONField):
    """The answer of a browser; a text that is no such answer is an error of the form, however deep it is nested."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise _refused() from error

    def bound_data(self, data: Any, initial: Any) -> Any:  # noqa: ARG002  # Django's signature
        """Return nothing: a page does not show again what was refused."""
        return None


class _Passkey:
    user: Any
    cleaned_data: dict[str, Any]
    passwordless: bool
    reason: ClassVar[Any] = _("second step of a sign-in")

    def clean_credential(self) -> Authenticator:
        credential, request = self.cleaned_data["credential"], context.request
        form: Any = super()
        self.user = self.user or _owner(credential)
        # Passkeys of nobody share a limit.
        attempt = gate.count_attempt(request, self.user.get_username() if self.user else "")
        if self.user is None or (self.passwordless and not _may_sign_in(self.user)):
            raise _refused()
        try:
            response = webauthn.parse_authentication_response(credential).response
            _require_origin(request, response.client_data)
            authenticator: Authenticator = form.clean_credential()
            count = response.authenticator_data.counter
        except _UNREADABLE as error:
            log.warning("a passkey was refused: %s", error)
            raise _refused() from error
        _count(authenticator, count, _author(self.user, str(self.reason)))
        login_limits.record_success(attempt)
        return authenticator


class PasskeyForm(_Passkey, webauthn_forms.AuthenticateWebAuthnForm):
    credential = CredentialField()


class PasskeyAloneForm(_Passkey, webauthn_forms.LoginWebAuthnForm):
    reason = _("sign-in without a password")
    credential = CredentialField()


class PasskeyAgainForm(_Passkey, webauthn_forms.ReauthenticateWebAuthnForm):
    reason = _("change of the second factor")
    credential = CredentialField()


class AddPasskeyForm(webauthn_forms.AddWebAuthnForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        widget=fields.text(),
        help_text=_("To tell your passkeys apart, such as the name of the device."),
    )
    passwordless = forms.BooleanField(
        label=_("Sign in without a password"),
        required=False,
        initial=True,
        widget=fields.tick(),
        help_text=_(
            "The device must store the passkey, and verify you by fingerprint, face or PIN."
        ),
    )
    credential = CredentialField()

    def clean_name(self) -> str:
        name = str(super().clean_name())
        if Authenticator.objects.filter(user_id=self.user.pk, data__name=name).exists():
            raise ValidationError(gettext("Your account has a passkey of this name."))
        return name

    def clean_credential(self) -> dict[str, Any]:
        """Return what is stored of the answer: nothing but the parts that are verified."""
        if self.errors:  # of the name
            return {}
        try:
            parts = _stored_parts(context.request, self.cleaned_data["credential"])
            webauthn.complete_registration(parts)
        except _UNREADABLE as error:
            log.warning("a passkey was not enrolled: %s", error)
            raise _refused() from error
        return parts

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = forms.Form.clean(self) or {}  # the rest has been verified above
        return cleaned


class RenamePasskeyForm(webauthn_forms.EditWebAuthnForm):
    name = forms.CharField(label=_("Name"), max_length=100, widget=fields.text())


def _refused() -> ValidationError:
    return ValidationError(
        gettext(
            "This passkey was not accepted: it is not enrolled for the account on this host, its signature is not"
            " right, or the request has expired. Try again. The log of this site has the details."
        )
    )


def _owner(credential: Any) -> User | None:
    try:
        user: Any = webauthn.extract_user_from_response(credential)
    except _UNREADABLE:
        return None
    return cast("User", user)


def _may_sign_in(user: User) -> bool:
    """Return True if the password of the user would sign in, too."""
    is_welcome = user.is_staff or bool(cluster_owners.rights(user))
    return user.is_active and is_welcome and second_factor.is_possible(user)


def _require_origin(request: HttpRequest, client_data: Any) -> None:
    """Raise ValueError unless the answer is of a page of this site; allauth accepts subdomains and other ports."""
    host = request.get_host().removesuffix(":443" if request.is_secure() else ":80")
    if client_data.origin != f"{request.scheme}://{host}" or client_data.cross_origin:
        raise ValueError(f"origin {client_data.origin}")


def _stored_parts(request: HttpRequest, credential: Any) -> dict[str, Any]:
    response = webauthn.parse_registration_response(credential).response
    _require_origin(request, response.client_data)
    if Authenticator.objects.filter(data__credential__rawId=credential["rawId"]).exists():
        raise ValueError("this passkey is enrolled already")
    properties = credential.get("clientExtensionResults", {}).get("credProps", {})
    parts = {name: credential["response"][name] for name in ("clientDataJSON", "attestationObject")}
    return {
        **{name: credential[name] for name in ("id", "rawId", "type")},
        "response": parts,
        "clientExtensionResults": {"credProps": {"rk": properties.get("rk") is True}},
    }


def _count(authenticator: Authenticator, count: int, author: events.Author) -> None:
    """Record a signature and its counter. Raises ValidationError if this is not higher than the last one."""
    with events.recorded_by(author):
        row = Authenticator.objects.select_for_update().get(pk=authenticator.pk)
        last = row.data.get("sign_count", row.wrap().authenticator_data.counter)
        is_regressed = count <= last and bool(count or last)
        now = time.time()
        row.data |= (
            {"regressed_at": now} if is_regressed else {"sign_count": count, "signed_at": now}
        )
        row.save(update_fields=["data"])
    if is_regressed:  # after the transaction, which has recorded it
        log.warning("passkey %s: counter %s after %s", row.pk, count, last)
        raise ValidationError(
            gettext(
                "The passkey's counter of signatures went backwards: it may have been copied. Remove it, and tell"
                " an administrator."
            )
        )
