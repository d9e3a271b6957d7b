"""The composition root: settings, URLs, processes. No other package imports it."""

from ipam_site.celery import app as celery_app

__all__ = ["celery_app"]
__version__ = "0.1.0"
