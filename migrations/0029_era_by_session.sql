-- The check of the era stands in every append and every take. Which database this is, PostgreSQL read from a file on disk each
-- time; but a session never moves to another one, so each asks once. (Behind a pooler too: it is a fact of the server's
-- own session, whoever uses it.)
create or replace function log_database() returns text language plpgsql stable as $$
declare
  known text := current_setting('kontor.database', true);
begin
  if known <> '' then
    return known;
  end if;
  select case when has_function_privilege('pg_control_system()', 'execute')
      then (select system_identifier from pg_control_system()) else 0 end
    || '/' || (select oid from pg_database where datname = current_database())
  into known;
  perform set_config('kontor.database', known, false);
  return known;
end $$;

create or replace function is_log_era(expected int) returns boolean language plpgsql stable as $$
declare
  latest log_eras;
begin
  select * into latest from log_eras order by era desc limit 1;
  if latest.era = expected and latest.database = log_database() then
    return true;
  end if;
  raise exception 'the log is in another era than %', expected using errcode = 'KT001';
end $$;
