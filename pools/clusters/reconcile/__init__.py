"""The engine that reconciles the register with clusters, from any state (rule `reconcile-converges`).

`handler` is the interface of one kind of object, `leases` decides which worker syncs a cluster,
`storage` compares a list with the observed objects and stores them, `ingest` imports changes, `writes` sends
differences, and `sync` runs a full sync.
"""
