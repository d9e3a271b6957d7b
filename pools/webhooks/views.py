"""Endpoints below /webhooks/v1/; the key in a path is a secret, which ipam_site/logs.py redacts."""

from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import URLPattern, path
from rest_framework import exceptions
from rest_framework import views as rest_views
from rest_framework.request import Request

from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import AddressSpace
from pools.platform import process_metrics
from pools.platform.rest import authentication
from pools.webhooks import callers, podippools, register, reviews
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
            space = callers.authorized_space(plain, cluster, key)
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
