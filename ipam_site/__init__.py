"""The composition root: settings, URLs, processes. No other package imports it."""

import gc

# The imports of a start leave no garbage, and looking for it takes a sixth of the start.
gc.set_threshold(20_000, 20, 20)

from ipam_site.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
__version__ = "0.1.0"
