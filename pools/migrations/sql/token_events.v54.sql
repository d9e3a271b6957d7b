-- Every token that is created, changed or revoked, by whatever means, leaves an event with its owner and, in the
-- context, its author. Neither the token nor its digest is part of it.
CREATE OR REPLACE FUNCTION pools_token_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  token knox_authtoken%ROWTYPE;
BEGIN
  IF TG_OP = 'DELETE' THEN token := OLD; ELSE token := NEW; END IF;
  INSERT INTO pools_tokenevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context, owner, expiry)
  VALUES (ipam_now(),
    CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'changed' ELSE 'revoked' END, token.user_id,
    NULLIF(current_setting('pghistory.context_metadata', true), '')::jsonb,
    COALESCE((SELECT username FROM auth_user WHERE id = token.user_id), ''), token.expiry);
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS pools_token_event ON knox_authtoken;
CREATE TRIGGER pools_token_event AFTER INSERT OR UPDATE OR DELETE ON knox_authtoken
  FOR EACH ROW EXECUTE FUNCTION pools_token_event();
