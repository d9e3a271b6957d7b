"""What the register knows of an API token beside django-rest-knox: its last use, and how it is limited."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.models.clusters import Cluster
from pools.models.pools import Pool


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
