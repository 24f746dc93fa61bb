-- A position in the log is made of transaction numbers, and these mean something in one cluster only. Where the database goes
-- on in another one (a restored dump, a logical switch-over), a new era of the log begins: all of an earlier era lies before it.
create table log_eras (
  era int primary key,
  -- the cluster's system identifier and the database's oid: see log_database()
  database text not null,
  began_at timestamptz not null default now()
);

-- Which database this is, of which cluster. One that is dropped and restored in its own cluster is another: its positions
-- would hold, but what nodes remember of people would not. Everybody may ask PostgreSQL for the identifier; where a service
-- forbids it, it has one cluster for all we know.
create function log_database() returns text language sql stable as $$
  select case when has_function_privilege('pg_control_system()', 'execute')
      then (select system_identifier from pg_control_system()) else 0 end
    || '/' || (select oid from pg_database where datname = current_database())
$$;

-- Asked in every append and every take: refuses rather than to let something be written where nobody will read it.
create function is_log_era(expected int) returns boolean language plpgsql stable as $$
begin
  if exists (select from log_eras where era = expected and database = log_database())
     and not exists (select from log_eras where era > expected) then
    return true;
  end if;
  raise exception 'the log is in another era than %', expected using errcode = 'KT001';
end $$;

create procedure assert_log_era(expected int) language plpgsql as $$
begin
  perform is_log_era(expected);
end $$;

-- The era of this database; begun, if it is not the last one. Whoever calls it holds a lock against others.
create function enter_log_era() returns int language plpgsql as $$
declare
  latest log_eras;
begin
  select * into latest from log_eras order by era desc limit 1;
  if latest.database is distinct from log_database() then
    insert into log_eras (era, database) values (coalesce(latest.era, 0) + 1, log_database()) returning * into latest;
    -- What nodes remember may come from a later moment than the dump: the version jumps past all that they can have seen.
    update config_version set version = version + 1000000;
  end if;
  return latest.era;
end $$;

-- What there is, is of this database; unless its numbers lie in the future, because it was restored from a dump of another.
insert into log_eras (era, database)
select 1, case when exists (
    select from log where xid >= pg_snapshot_xmax(pg_current_snapshot())
    union all select from log_cursors where xid >= pg_snapshot_xmax(pg_current_snapshot())
  ) then 'unknown' else log_database() end;

alter table log add column era int not null default 1;
alter table log_cursors add column era int not null default 1;
create index log_by_era on log (partition, era, xid, ord);
drop index log_by_position;

-- The rest of a large entry is parked, and soon applied: compressing it would cost more than it saves.
alter table parked_entries alter column body set storage external;
