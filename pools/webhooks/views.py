from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from rest_framework import exceptions, views
from rest_framework.request import Request

from pools.core import errors
from pools.core.kubernetes import resources
from pools.models import AddressSpace
from pools.platform import process_metrics
from pools.webhooks import callers, podippools, register, reviews
from pools.webhooks.reviews import Review, Verdict

JSON = "application/json"
_POOLS = resources.CILIUM_POD_IP_POOL


class Webhook(views.APIView):
    """What an API server is told about one request to a resource of `group`.

    200 with the verdict; 400 for what is no AdmissionReview, 403 for an unknown caller, 404 without
    such a cluster, 413 above 3 MiB, 503 while the database does not answer (the failurePolicy of
    the webhook decides then).
    """

    authentication_classes = ()
    permission_classes = ()
    http_method_names = ["post"]
    schema = None
    group = ""
    plurals: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Nothing to negotiate, nobody to log in."""

    def post(self, request: Request, cluster: str, key: str = "") -> HttpResponseBase:
        started, result = time.perf_counter(), "error"
        try:
            verdict, answer = self._judged(request, cluster, key)
            result = "refused" if verdict.refusals else "patched" if verdict.patch else "allowed"
        finally:
            name = request.path.rpartition("/")[2]
            process_metrics.count("ipam_webhook_reviews_total", webhook=name, result=result)
            process_metrics.observe(
                "ipam_webhook_duration_seconds", time.perf_counter() - started, webhook=name
            )
        return answer

    def _judged(self, request: Request, cluster: str, key: str) -> tuple[Verdict, HttpResponseBase]:
        plain: HttpRequest = request._request
        if "\0" in cluster + key:
            raise errors.NotAllowed("No name has that character.")
        body = _body(plain)  # however slowly it comes
        with register.reading():
            space = callers.space_of(plain, cluster, key)
            review = reviews.parse(body, group=self.group, plurals=self.plurals)
            verdict = self.judge(review, space)
        self.after_review(review, space)
        return verdict, JsonResponse(reviews.answer(review, verdict))

    def judge(self, review: Review, space: AddressSpace) -> Verdict:
        """The verdict; in a transaction that cannot write."""
        raise NotImplementedError

    def after_review(self, review: Review, space: AddressSpace) -> None:
        """What is left to do when that transaction has ended."""


class ValidateCiliumPodIPPools(Webhook):
    group = _POOLS.group
    plurals = (_POOLS.plural,)

    def judge(self, review: Review, space: AddressSpace) -> Verdict:
        return podippools.judge(review, space)


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
