"""The pages of VM networks; each module registers its own."""

from claims.admin import events, memberships

__all__ = ["events", "memberships"]
