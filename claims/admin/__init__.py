"""The pages of VM networks; each module registers its own."""

from claims.admin import entries, events, ipamclaims, ippools, memberships, networks, webhooks, workloads

__all__ = ["entries", "events", "ipamclaims", "ippools", "memberships", "networks", "webhooks", "workloads"]
