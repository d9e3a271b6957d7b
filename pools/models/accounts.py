"""What accounts sign in with: a directory of the organization, or a second factor beside their password here."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, ThrottlingMixin


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
    """The authenticator app of an account of this site, confirmed by a first code.

    `sealed` is the secret of the app, sealed with the key ring. `last_step` is the time step of the last
    accepted code: no code is accepted twice. `recovery_digests` are those of the unused recovery codes.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor"
    )
    # An account has one device, and only a confirmed one.
    name = None  # type: ignore[assignment]  # no column
    confirmed = None  # type: ignore[assignment]  # no column
    sealed = models.TextField()
    last_step = models.BigIntegerField()
    recovery_digests = ArrayField(models.CharField(max_length=64))

    class Meta:
        verbose_name = _("second factor")
        verbose_name_plural = _("second factors")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)

    def get_throttle_factor(self) -> int:
        """Return the seconds to wait after the first wrong code; each further one doubles them."""
        return 1
