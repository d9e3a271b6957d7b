"""notices/: notices about conditions that need attention, open and ended ones."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from pools.models import Notice
from pools.models.notices import Level
from pools.platform.alerts.representation import NoticeSerializer
from pools.platform.rest import filters, generics


class NoticeFilter(filters.FilterSet):
    open = filters.flag(
        method="filter_open", help_text="true: only open notices; false: only ended ones."
    )
    level = filters.choice(*Level.values)
    code = filters.Filter(help_text="For example pool_nearly_full.")
    subject = filters.Filter(help_text="For example cluster/3.")

    def filter_open(self, rows: QuerySet[Notice], _name: str, is_open: bool) -> QuerySet[Notice]:
        return rows.filter(ended_at__isnull=is_open)


class Notices(generics.ListView):
    """Notices, open and ended ones."""

    needs = {"GET": ("pools.view_notice",)}
    queryset = Notice.objects.all()
    serializer_class = NoticeSerializer
    filterset_class = NoticeFilter
    ordering = "-id"


class NoticeView(generics.DetailView):
    needs = {"GET": ("pools.view_notice",)}
    queryset = Notice.objects.all()
    serializer_class = NoticeSerializer
    lookup_url_kwarg = "notice_id"

    def get(self, request: Request, notice_id: int) -> Response:
        """A notice."""
        return self.retrieve(request)
