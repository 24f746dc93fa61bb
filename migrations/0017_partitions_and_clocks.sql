-- The bound of the first partition of events was written without a zone, and so was made in the zone of whoever made it:
-- west of UTC it holds the first hours of 2000, which the partition after it then could not have; east of it a gap is left.
do $$
declare
  year_2000 timestamptz := '2000-01-01 00:00:00+00';
begin
  if pg_get_expr((select relpartbound from pg_class where oid = 'events_before_2000'::regclass), 'events_before_2000'::regclass)
     = 'FOR VALUES FROM (MINVALUE) TO (''2000-01-01 00:00:00+00'')' then
    return;
  end if;
  alter table events detach partition events_before_2000;
  if not exists (select from pg_class where relname = 'events_p24000' and relnamespace = current_schema()::regnamespace) then
    create table events_p24000 partition of events
      for values from ('2000-01-01 00:00:00+00') to ('2000-02-01 00:00:00+00');
  end if;
  with moved as (delete from events_before_2000 where occurred_at >= year_2000 returning *)
  insert into events select * from moved;
  alter table events attach partition events_before_2000 for values from (minvalue) to ('2000-01-01 00:00:00+00');
end $$;

-- When retention last ran, by PostgreSQL's clock: one that jumped since then drops nothing until it has proved steady.
create table retention_clock (
  one_row boolean primary key default true check (one_row),
  trusted_at timestamptz not null,
  held_since timestamptz,
  held_reason text
);

-- Partitions of the log that failed outside of any entry, and when they last did.
create table stalled_partitions (
  partition text collate "C" primary key,
  failed_at timestamptz not null,
  error text not null
);

-- For their retention, over all tenants.
create index dead_letters_by_age on dead_letters (failed_at);
