from __future__ import annotations

from django.db import models


class TokenUse(models.Model):
    """When an API token was last used, to some ten minutes; django-rest-knox keeps no such time."""

    token = models.OneToOneField(
        "knox.AuthToken", primary_key=True, on_delete=models.CASCADE, related_name="use"
    )
    used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.token_id[:8]}… at {self.used_at}"
