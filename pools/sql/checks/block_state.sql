-- State, holder and times of a block agree; a withheld block is not available.
SELECT 'Block ' || cidr || ' (' || state || '): ' || why FROM (
    SELECT cidr, state, CASE
        WHEN state NOT IN ('available', 'held', 'cooling') THEN 'its state is unknown'
        WHEN state = 'held' AND (holder_id = '' OR holder_kind = '') THEN 'it has no holder'
        WHEN state = 'held' AND allocated_at IS NULL THEN 'it has no time of allocation'
        WHEN state = 'held' AND available_from IS NOT NULL
            THEN 'it is held, but could be allocated again'
        WHEN state <> 'held' AND available_from IS NULL
            THEN 'it has no time from which it can be allocated'
        WHEN state = 'cooling' AND released_at IS NULL THEN 'it has no time of release'
        WHEN state = 'cooling' AND available_from < released_at
            THEN 'its cooldown ends before its release'
        WHEN state = 'available' AND withheld
            THEN 'it is withheld, but in the window'
        END AS why
    FROM pools_block) b
WHERE why IS NOT NULL
