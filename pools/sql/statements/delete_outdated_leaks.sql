-- Delete leaks whose block its holder does not hold any more, and return their ids.
DELETE FROM pools_leak l WHERE NOT EXISTS (
    SELECT FROM pools_block b WHERE b.id = l.block_id AND b.state = 'held'
      AND (b.holder_kind, b.holder_id, b.holder_uid, b.allocated_at)
        = (l.holder_kind, l.holder_id, l.holder_uid, l.allocated_at))
RETURNING l.id
