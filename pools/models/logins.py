"""Failed sign-ins, counted so that passwords cannot be tried at will."""

from __future__ import annotations

from django.db import models


class LoginFailures(models.Model):
    """How often signing in failed for one account name, or from one address, since a moment.

    `key` is a keyed hash: what people type as their name is now and then their password.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.since:%Y-%m-%d %H:%M}"
