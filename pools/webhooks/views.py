"""Endpoints below /webhooks/v1/, and who may call them: API servers with the cluster's key in the path or a client certificate.

The key in a path is a secret, which ipam_site/logs.py redacts; the register stores only its digest. The web server
verifies certificates (`up --tls-client-ca`). IPAM_WEBHOOK_CLIENTS tells which certificate is valid for which cluster.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import URLPattern, path
from rest_framework import exceptions, views as rest_views
from rest_framework.request import Request

from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import AddressSpace, Cluster
from pools.platform import database, events, process_metrics
from pools.platform.rest import authentication
from pools.webhooks import podippools, register, reviews
from pools.webhooks.reviews import Review, ReviewResult

JSON = "application/json"
_POOLS = resources.CILIUM_POD_IP_POOL


class Webhook(rest_views.APIView):
    """Review one request to a resource of `group`.

    200 with the result; 400 for a body that is no AdmissionReview, 403 for an unknown caller, 404
    for an unknown cluster, 413 above 3 MiB, 429 for too many wrong keys of an address, 503 while the database does not answer (then the
    failurePolicy of the webhook decides).
    """

    authentication_classes = ()
    permission_classes = ()
    http_method_names = ["post"]
    schema = None
    group = ""
    plurals: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Skip content negotiation and authentication."""

    def post(self, request: Request, cluster: str, key: str = "") -> HttpResponseBase:
        started, label = time.perf_counter(), "error"
        try:
            result, answer = self._review(request, cluster, key)
        except errors.NotAllowed as failure:
            if key:
                authentication.slow_down(request, failure)
            raise
        else:
            label = "refused" if result.refusals else "patched" if result.patch else "allowed"
        finally:
            name = request.path.rpartition("/")[2]
            process_metrics.count("ipam_webhook_reviews_total", webhook=name, result=label)
            process_metrics.observe(
                "ipam_webhook_duration_seconds", time.perf_counter() - started, webhook=name
            )
        return answer

    def _review(
        self, request: Request, cluster: str, key: str
    ) -> tuple[ReviewResult, HttpResponseBase]:
        plain: HttpRequest = request._request
        if "\0" in cluster + key:
            raise errors.NotAllowed("A name or key contains a NUL character.")
        body = _body(plain)  # outside of the transaction: the client may be slow
        with register.read_only_transaction():
            space = authorized_space(plain, cluster, key)
            review = reviews.parse(body, group=self.group, plurals=self.plurals)
            result = self.evaluate(review, space)
        self.after_review(review, space)
        return result, JsonResponse(reviews.answer(review, result))

    def evaluate(self, review: Review, space: AddressSpace) -> ReviewResult:
        """Return the result of a review, in a read-only transaction."""
        raise NotImplementedError

    def after_review(self, review: Review, space: AddressSpace) -> None:
        """Do what remains after that transaction has ended."""


class ValidateCiliumPodIPPools(Webhook):
    group = _POOLS.group
    plurals = (_POOLS.plural,)

    def evaluate(self, review: Review, space: AddressSpace) -> ReviewResult:
        return podippools.validate(review, space)


def _body(request: HttpRequest) -> bytes:
    encoded = request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity"
    if request.content_type != JSON or encoded:
        raise exceptions.UnsupportedMediaType(
            request.content_type or "", f"Send the review as {JSON}, without compression."
        )
    if int(request.META.get("CONTENT_LENGTH") or 0) > reviews.LARGEST:
        message = f"may have at most {reviews.LARGEST} bytes"
        raise errors.InvalidInput.for_field("", "too_large", message)
    return request.body


_VALIDATE = ValidateCiliumPodIPPools.as_view()

urlpatterns: list[URLPattern] = [
    path("<str:cluster>/validate-ciliumpodippools", _VALIDATE),
    path("<str:cluster>/<str:key>/validate-ciliumpodippools", _VALIDATE),
]


PREFIX = "cadw_"  # logs and secret scanners recognize keys by it


def make(cluster: Cluster, *, author: events.Author) -> str:
    """Replace the cluster's key and return the new one, which cannot be read again."""
    key = PREFIX + secrets.token_urlsafe(32)
    with events.recorded_by(author):
        Cluster.objects.filter(pk=cluster.pk).update(
            webhook_digest=_digest(key), webhook_key_made_at=database.now()
        )
    return key


def matches(key: str, cluster: Cluster) -> bool:
    """Return True if this is the cluster's key."""
    return bool(cluster.webhook_digest) and hmac.compare_digest(
        cluster.webhook_digest, _digest(key)
    )


def is_known(key: str) -> bool:
    """Return True if this is the key of any cluster."""
    return Cluster.objects.filter(webhook_digest=_digest(key)).exists()


def _digest(key: str) -> str:
    # The key has 256 random bits: a slow hash would not make it safer.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


SOCKET = "gunicorn.socket"  # key in request.META; headers only set keys that begin with HTTP_


def authorized_space(request: HttpRequest, cluster: str, key: str) -> AddressSpace:
    """Return the address space of the cluster if the caller may send reviews of it.

    Raises NotAllowed for an unknown caller, NotFound if a known caller names an unknown cluster.
    """
    spaces = AddressSpace.objects.select_related("cluster")
    space = spaces.filter(cluster__name=cluster, name=AddressSpace.OWN).first()
    by_key = matches(key, space.cluster) if space and key else bool(key) and is_known(key)
    if space and by_key:
        return space
    if not by_key and not _speaks_for(cluster, certificate_names(request)):
        raise errors.NotAllowed("The cluster's key or a client certificate of it is required.")
    if space is None:
        raise errors.NotFound("There is no such cluster.")
    return space


def certificate_names(request: HttpRequest) -> set[str]:
    """Return the common name and alternative names of the verified client certificate."""
    read: Any = getattr(request.META.get(SOCKET), "getpeercert", None)
    return set(_names(read() or {})) if read else set()


def _names(certificate: dict[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        yield from (value for name, value in part if name == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))


def _speaks_for(cluster: str, names: set[str]) -> bool:
    """Return True if IPAM_WEBHOOK_CLIENTS has one of the names, or `cluster=name` with it."""
    for word in settings.IPAM_WEBHOOK_CLIENTS:
        only, _, name = word.rpartition("=")
        if name in names and only in {"", cluster}:
            return True
    return False
