"""The admin site of the register. Its modules register their tables when Django imports this."""

from pools.admin import blocks, clusters, environments, events, pools, requests, users

__all__ = ["blocks", "clusters", "environments", "events", "pools", "requests", "users"]
