-- Every app, passkey or set of recovery codes that is enrolled, used or removed, by whatever means, leaves an event
-- with its owner and, in the context, its author. No secret is part of it. Codes of apps leave no event.
CREATE OR REPLACE FUNCTION pools_factor_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  factor mfa_authenticator%ROWTYPE;
  label text;
BEGIN
  IF TG_OP = 'DELETE' THEN factor := OLD; ELSE factor := NEW; END IF;
  label := CASE
    WHEN TG_OP = 'INSERT' THEN 'created'
    WHEN TG_OP = 'DELETE' THEN 'deleted'
    WHEN OLD.data -> 'regressed_at' IS DISTINCT FROM NEW.data -> 'regressed_at' THEN 'counter_regressed'
    WHEN OLD.data -> 'used_mask' IS DISTINCT FROM NEW.data -> 'used_mask' THEN 'used'
    WHEN OLD.data -> 'signed_at' IS DISTINCT FROM NEW.data -> 'signed_at' THEN 'used'
    WHEN OLD.data ->> 'name' IS DISTINCT FROM NEW.data ->> 'name' THEN 'changed' END;
  IF label IS NOT NULL THEN
    INSERT INTO pools_factorevent (pgh_created_at, pgh_label, pgh_obj_id, pgh_context, owner, kind, name)
    VALUES (ipam_now(), label, factor.user_id,
      NULLIF(current_setting('pghistory.context_metadata', true), '')::jsonb,
      COALESCE((SELECT username FROM auth_user WHERE id = factor.user_id), ''), factor.type,
      COALESCE(factor.data ->> 'name', ''));
  END IF;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS pools_factor_event ON mfa_authenticator;
CREATE TRIGGER pools_factor_event AFTER INSERT OR UPDATE OR DELETE ON mfa_authenticator
  FOR EACH ROW EXECUTE FUNCTION pools_factor_event();
