"""What a scrape of /metrics says, read from the database at that time.

`families` names every metric. `registry.collect()` gives them all with their values: gauges are asked of
the tables in one snapshot, totals are what all processes have added up (pools/platform/process_metrics.py), and what
happened to blocks is counted from the event tables (`counting`).
"""
