-- django-pgtrigger asks this function in every trigger that it makes whether to do nothing; its own
-- body opens a subtransaction each time, which costs the hot path. A migration that adds triggers
-- writes that body again: it ends with an installation of this file (CONTRIBUTING.md).
CREATE OR REPLACE FUNCTION _pgtrigger_should_ignore(trigger_name name) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT trigger_name = ANY (NULLIF(current_setting('pgtrigger.ignore', true), '')::name[])
$$;
