"""What the register knows of users beside Django, django-allauth and django-rest-knox.

Sessions, accounts of a directory of the organization, owners of second factors, failed sign-ins; the last use of an
API token and how it is limited; time zones, and columns and filters of lists, that users chose for the admin site.
"""

import zoneinfo
from functools import cache

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.models.clusters import Cluster
from pools.models.pools import Pool


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


@cache
def time_zones() -> frozenset[str]:
    """Return the IANA names of the time zones of places, such as `Europe/Berlin`, and UTC."""
    names = zoneinfo.available_timezones()
    return frozenset(name for name in names if "/" in name and not name.startswith("Etc/")) | {
        "UTC"
    }


class Preferences(models.Model):
    """What a user chose for all pages.

    `time_zone` is that of their times, "" that of the browser. `first_steps` has what they have looked at or dismissed
    of the checklist of an empty site.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    time_zone = models.CharField(max_length=64, blank=True, default="")
    first_steps = ArrayField(models.CharField(max_length=20), default=list)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user}: {self.time_zone}"


class ListColumns(models.Model):
    """The columns that a user sees in a list, in their order. `list` is its model: `pools.block`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    list = models.CharField(max_length=100)
    columns = ArrayField(models.CharField(max_length=100))

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "list"], name="list_columns_unique"),
            models.CheckConstraint(condition=models.Q(columns__len__gt=0), name="list_has_columns"),
        ]

    def __str__(self) -> str:
        return f"{self.list}: {', '.join(self.columns)}"


class SavedFilter(models.Model):
    """The filters, search and order of a list under a name; everybody who sees the list sees a shared one."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    list = models.CharField(max_length=100)
    name = models.CharField(max_length=80)
    # A query string, which orders by the names of columns.
    query = models.CharField(max_length=2000, blank=True, default="")
    shared = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        default_permissions = ("change",)
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list", "name"],
                name="saved_filter_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("You have a filter with this name for this list."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class TokenOwner(User):
    """A user as the owner of API tokens: what events of tokens are about."""

    class Meta:
        proxy = True
        verbose_name = _("API token")


class TokenUse(models.Model):
    """When an API token was last used, with a precision of ten minutes; django-rest-knox does not store it."""

    token = models.OneToOneField(
        "knox.AuthToken", primary_key=True, on_delete=models.CASCADE, related_name="use"
    )
    used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.token_id[:8]}… at {self.used_at}"


class TokenLevel(models.TextChoices):
    """Which of its owner's rights a token has; each level includes the ones before."""

    READ = "read", _("read")
    ALLOCATE = "allocate", _("allocate and release")
    ADMINISTER = "administer", _("everything that its owner may")


class TokenScope(models.Model):
    """What an API token may do at most. A token without a scope may do what its owner may.

    The cluster or pool has no constraint: when it is removed, the token stays and opens nothing.
    """

    token = models.OneToOneField(
        "knox.AuthToken", primary_key=True, on_delete=models.CASCADE, related_name="scope"
    )
    description = models.CharField(max_length=200, blank=True)
    level = models.CharField(max_length=10, choices=TokenLevel, default=TokenLevel.ADMINISTER)
    cluster = models.ForeignKey(
        Cluster,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    pool = models.ForeignKey(
        Pool, models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="token_scope_level", condition=models.Q(level__in=TokenLevel.values)
            ),
            models.CheckConstraint(
                name="token_scope_one_limit",
                condition=models.Q(cluster=None) | models.Q(pool=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.token_id[:8]}…: {self.level}"
