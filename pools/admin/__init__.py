"""Admin site of the register. Importing this package registers the ModelAdmin classes."""

from pools.admin import (
    alerts,
    api_tokens,
    custom_fields,
    events,
    netbox_sources,
    template_library,
    users,
    webhook_targets,
)
from pools.admin.clusters import clusters, drift, observed
from pools.admin.plan import containers
from pools.admin.pools import (
    blocks,
    cidr_migrations,
    cidrs,
    environments,
    leaks,
    pools,
)
