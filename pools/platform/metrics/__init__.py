"""The metrics of a scrape of /metrics, read from the database at that time.

`families` defines every metric, and `registry.collect()` returns their values. Gauges are queried from the tables
in one snapshot, totals are the sums of all processes (pools/platform/process_metrics.py), and events of blocks are
counted from the event tables (`registry.count_events`).
"""
