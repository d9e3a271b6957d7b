-- Return all two and three characters in a row of a text, in upper case, for GIN indexes that find parts of
-- names (pools/platform/name_parts.py). A loop: a set of rows would take five times as long for a name.
CREATE OR REPLACE FUNCTION ipam_ngrams(in_text text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  letters text := upper(in_text);
  ngrams text[] := '{}';
BEGIN
  FOR i IN 1 .. length(letters) - 1 LOOP
    ngrams := ngrams || substr(letters, i, 2) || substr(letters, i, 3);
  END LOOP;
  RETURN ngrams;
END $$;
