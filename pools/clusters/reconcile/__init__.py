"""The engine that keeps the register and the clusters at one, from any start (rule `reconcile-converges`).

`kinds` is what a handler of one kind of object must offer, `leases` says who may work on a cluster,
`seen` compares a list with what was seen before, `writes` sends what differs, `passes` runs it all.
"""
