"""Failed sign-ins, counted to limit attempts to guess passwords."""

from __future__ import annotations

from django.db import models


class LoginFailures(models.Model):
    """The number of failed sign-ins of one account name, or from one address, since `since`.

    `key` is a keyed hash, because people sometimes type their password as their name.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.failures} since {self.since:%Y-%m-%d %H:%M}"
