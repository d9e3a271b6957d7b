"""DNS names of addresses."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.models.pools import Pool


class DNSName(models.Model):
    """The DNS name that a holder's block has, for as long as this holder has it.

    A name belongs to the time of allocation of its block, and ends with it: so a release, which is the hot
    path, does not know of names. Blocks of the same name are its round robin.
    """

    block_id = models.BigIntegerField(primary_key=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="+")
    cidr = CidrAddressField()
    # The holder, and since when: what tells it from earlier and later ones.
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    allocated_at = models.DateTimeField()
    name = models.CharField(max_length=253)

    class Meta:
        verbose_name = _("DNS name")
        verbose_name_plural = _("DNS names")
        default_permissions = ()
        indexes = [models.Index(fields=["name"], name="dns_name")]

    def __str__(self) -> str:
        return self.name
