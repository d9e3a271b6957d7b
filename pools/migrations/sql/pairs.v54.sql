-- Return the pairs of neighbouring octets of a MAC and of an IPv4 address, `34:56` and `20:3`, for a GIN index that
-- finds parts of them (pools/core/address_parts.py). Of an IPv6 address, whose groups have any length, what stands
-- on both sides of each colon, `f:1` of `beef:10`, and each group of four digits.
CREATE OR REPLACE FUNCTION ipam_pairs(in_mac macaddr, in_address inet) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  octets text[] := string_to_array(in_mac::text, ':');
  groups text[] := string_to_array(translate(host(in_address), '.', ':'), ':');
  pairs text[] := '{}';
BEGIN
  FOR i IN 2 .. COALESCE(cardinality(octets), 0) LOOP
    pairs := pairs || (octets[i - 1] || ':' || octets[i]);
  END LOOP;
  IF family(in_address) = 4 THEN
    FOR i IN 2 .. 4 LOOP
      pairs := pairs || (groups[i - 1] || ':' || groups[i]);
    END LOOP;
  ELSE
    FOR i IN 1 .. COALESCE(cardinality(groups), 0) LOOP
      IF i > 1 THEN
        pairs := pairs || (right(groups[i - 1], 1) || ':' || left(groups[i], 1));
      END IF;
      IF length(groups[i]) = 4 THEN
        pairs := pairs || groups[i];
      END IF;
    END LOOP;
  END IF;
  RETURN pairs;
END $$;
