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
    cidrs,
    environments,
    leaks,
    migration_list,
    pools,
    requests,
)
