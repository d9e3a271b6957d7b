"""Use of API tokens."""

from __future__ import annotations

from django.db import models


class TokenUse(models.Model):
    """When an API token was last used, with a precision of ten minutes; django-rest-knox does not store it."""

    token = models.OneToOneField(
        "knox.AuthToken", primary_key=True, on_delete=models.CASCADE, related_name="use"
    )
    used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.token_id[:8]}… at {self.used_at}"
