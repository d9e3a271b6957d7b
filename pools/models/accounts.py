"""Sessions, accounts of a directory of the organization, owners of second factors (of django-allauth), failed sign-ins."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.translation import gettext_lazy as _


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


class FactorOwner(User):
    """A user as the owner of a second factor: what events of apps, passkeys and recovery codes are about."""

    class Meta:
        proxy = True
        verbose_name = _("second factor")


class LoginFailures(models.Model):
    """The number of failed sign-ins of one account name, or from one address, since `since`.

    `key` is a keyed hash, because people sometimes type their password as their name.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.since:%Y-%m-%d %H:%M}"
