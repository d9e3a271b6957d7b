"""Admin pages of VM networks; each module registers its own models."""

from claims.admin import memberships, start, webhooks, workloads
from claims.admin.entries import entries, ippools
from claims.admin.imports import imports
from claims.admin.ipamclaims import ipamclaims
from claims.admin.networks import networks
from claims.admin.waves import waves
