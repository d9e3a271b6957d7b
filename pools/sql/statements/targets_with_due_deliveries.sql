-- Return the webhook targets with deliveries that are due: id, time at which the oldest became due.
-- $1 most bigint
SELECT t.id, min(d.next_try_at) FROM pools_webhooktarget t
JOIN pools_delivery d ON d.target_id = t.id AND d.state = 'pending'
    AND d.next_try_at <= ipam_clock()
WHERE t.enabled AND (t.leased_until IS NULL OR t.leased_until < ipam_clock())
    AND (t.wait_until IS NULL OR t.wait_until <= ipam_clock())
GROUP BY t.id ORDER BY 2, 1 LIMIT $1
