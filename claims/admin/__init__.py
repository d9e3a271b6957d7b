"""The pages of VM networks; each module registers its own."""

from claims.admin import events, memberships, networks, webhooks

__all__ = ["events", "memberships", "networks", "webhooks"]
