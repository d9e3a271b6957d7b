"""Admin pages of VM networks; each module registers its own models."""

from claims.admin import ipamclaims, memberships, start, waves, webhooks, workloads
from claims.admin.entries import entries, ippools
from claims.admin.imports import imports
from claims.admin.networks import networks
