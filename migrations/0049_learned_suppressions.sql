-- Names that somebody who is not to be recorded was told together with later. They change nothing of what workers
-- remember (which tenants have such a list), and are written by workers: the version of the configuration stays.
alter table suppressions add column learned boolean not null default false;

create function suppressions_added() returns trigger language plpgsql as $$
begin
  if exists (select from added where not learned) then
    update config_version set version = version + 1;
    notify kontor_config;
  end if;
  return null;
end $$;

drop trigger suppressions_changed on suppressions;
create trigger suppressions_added after insert on suppressions
  referencing new table as added for each statement execute function suppressions_added();
create trigger suppressions_deleted after delete on suppressions
  for each statement execute function config_changed();
