-- Add the events with numbers above `after` and up to `upto` to the counters of allocations and releases.
-- $1 after bigint
-- $2 upto bigint
WITH block_events AS (
    SELECT pgh_label AS label, to_json(category)::text AS category, count(*) AS events
    FROM pools_blockevent
    WHERE pgh_id > $1 AND pgh_id <= $2 AND pgh_label IN ('allocated', 'released')
    GROUP BY 1, 2),
failures AS (
    SELECT to_json(category)::text AS category, to_json(code)::text AS code, count(*) AS events
    FROM pools_failureevent WHERE pgh_id > $1 AND pgh_id <= $2
    GROUP BY 1, 2),
totals (name, labels, events) AS (
    SELECT 'ipam_allocations_total',
        '{"category": ' || category || ', "result": "allocated"}', events
    FROM block_events WHERE label = 'allocated'
    UNION ALL
    SELECT 'ipam_releases_total', '{"category": ' || category || '}', events
    FROM block_events WHERE label = 'released'
    UNION ALL
    SELECT 'ipam_allocations_total',
        '{"category": ' || category || ', "result": "failed"}', sum(events)
    FROM failures GROUP BY category
    UNION ALL
    SELECT 'ipam_allocation_failures_total',
        '{"category": ' || category || ', "reason": ' || code || '}', events
    FROM failures)
INSERT INTO pools_measure AS measure (name, labels, value)
SELECT name, labels, events FROM totals ORDER BY name, labels
ON CONFLICT (name, labels) DO UPDATE SET value = measure.value + EXCLUDED.value
