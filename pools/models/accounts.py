"""What accounts sign in with: a directory of the organization, or a second factor beside their password here; failed sign-ins."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, ThrottlingMixin

from pools.models.fields import Now


class BrowserSession(AbstractBaseSession):
    """A session of a browser; `user` is who has signed in, by whom its sessions are found to end them."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)

    class Meta(AbstractBaseSession.Meta):
        default_permissions = ()

    def __str__(self) -> str:
        """Name the session without its key, which is the cookie of the browser."""
        return f"{self.user} until {self.expire_date:%Y-%m-%d %H:%M}"


class DirectorySource(models.TextChoices):
    OIDC = "oidc", _("OpenID Connect")
    LDAP = "ldap", _("LDAP")


class DirectoryAccount(models.Model):
    """A person of a directory who has signed in, or was refused.

    `subject` identifies the person in the directory for ever. `username` and `roles` are those of the last
    sign-in; `refusal` is the code of its refusal, else "". A person who was refused at the first sign-in
    has no user here.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="directory_account",
    )
    source = models.CharField(_("source"), max_length=4, choices=DirectorySource)
    subject = models.CharField(max_length=1024)
    username = models.CharField(max_length=150)
    roles = ArrayField(models.CharField(max_length=150), default=list)
    refusal = models.CharField(max_length=63, blank=True, default="")
    refused_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("directory account")
        verbose_name_plural = _("directory accounts")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["source", "subject"], name="directory_account_subject_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.username} ({self.source})"


class SecondFactor(ThrottlingMixin, Device):
    """The second factor of an account of this site: an authenticator app, passkeys, or both.

    `sealed` is the secret of the app, sealed with the key ring, "" without an app. `last_step` is the time step of
    the last accepted code: no code is accepted twice. `recovery_digests` are those of the unused recovery codes.
    `handle` identifies the account to passkeys, which store it; it names nobody.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor"
    )
    # An account has one device, and only a confirmed one.
    name = None  # type: ignore[assignment]  # no column
    confirmed = None  # type: ignore[assignment]  # no column
    sealed = models.TextField(blank=True, default="")
    last_step = models.BigIntegerField(default=-1)
    recovery_digests = ArrayField(models.CharField(max_length=64))
    handle = models.UUIDField(default=uuid.uuid4)

    class Meta:
        verbose_name = _("second factor")
        verbose_name_plural = _("second factors")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)

    def get_throttle_factor(self) -> int:
        """Return the seconds to wait after the first wrong code; each further one doubles them."""
        return 1


class Passkey(models.Model):
    """A public key of an account with a second factor; the private one stays in a device or password manager.

    `credential` is the attested credential data of WebAuthn: the id and the public key. The key belongs to one
    host, `rp_id`. `sign_count` is the counter of the last accepted signature, 0 if the authenticator has none;
    `regressed_at` is when a signature with a counter that was not higher was refused.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys"
    )
    name = models.CharField(_("name"), max_length=100)
    rp_id = models.CharField(max_length=253)
    credential_id = models.BinaryField(max_length=1023, unique=True)
    credential = models.BinaryField()
    sign_count = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)
    regressed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("passkey")
        verbose_name_plural = _("passkeys")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="passkey_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class LoginFailures(models.Model):
    """The number of failed sign-ins of one account name, or from one address, since `since`.

    `key` is a keyed hash, because people sometimes type their password as their name.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.since:%Y-%m-%d %H:%M}"
