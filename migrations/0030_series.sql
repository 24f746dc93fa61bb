-- Series of events and conversions are read from sums by minute, hour and day (UTC). Each transaction adds one row a minute,
-- type and source that it changed, so no writer waits for another; a job folds these into the sums. A series adds up both.
lock table events, conversions in share row exclusive mode;

create table event_sums_added (
  tenant_id int not null,
  minute timestamptz not null,
  event_type text collate "C" not null,
  source text collate "C" not null,
  count bigint not null
);
create index event_sums_added_by_time on event_sums_added (tenant_id, minute);

create table event_sums (
  tenant_id int not null,
  grain text collate "C" not null check (grain in ('minute', 'hour', 'day')),
  -- true: of all types together, event_type is ''. Whoever sends can make up as many types as events.
  all_types boolean not null,
  at timestamptz not null,
  event_type text collate "C" not null,
  source text collate "C" not null,
  count bigint not null,
  primary key (tenant_id, grain, all_types, at, event_type, source)
) with (fillfactor = 80);

-- Times whose events retention dropped: what event_sums holds of them counts no more, until a job has deleted it.
create table event_sums_dropped (
  since timestamptz not null,
  until timestamptz not null
);

create table conversion_sums_added (
  tenant_id int not null,
  minute timestamptz not null,
  event_type text collate "C" not null,
  conversion_type text collate "C" not null,
  source text collate "C" not null,
  currency text collate "C" not null,
  count bigint not null,
  amount numeric not null
);
create index conversion_sums_added_by_time on conversion_sums_added (tenant_id, minute);

create table conversion_sums (
  tenant_id int not null,
  grain text collate "C" not null check (grain in ('minute', 'hour', 'day')),
  at timestamptz not null,
  -- '' where only an order's record tells of the sale
  event_type text collate "C" not null,
  conversion_type text collate "C" not null,
  source text collate "C" not null,
  -- '' where there is no amount, or one without a currency
  currency text collate "C" not null,
  count bigint not null,
  amount numeric not null,
  primary key (tenant_id, grain, at, event_type, conversion_type, source, currency)
) with (fillfactor = 80);

insert into event_sums (tenant_id, grain, all_types, at, event_type, source, count)
select tenant_id, grain, grouping(event_type) = 1, date_trunc(grain, minute, 'UTC'), coalesce(event_type, ''), source, sum(count)
from (
  select tenant_id, date_trunc('minute', occurred_at, 'UTC') as minute, event_type, source, count(*) as count
  from events where not conversion group by 1, 2, 3, 4
) minutes cross join unnest(array['minute', 'hour', 'day']) as g (grain)
group by grouping sets ((1, 2, 4, source, event_type), (1, 2, 4, source));

-- As the list of conversions shows it; '' where there is nothing to add up.
create function conversion_currency(order_amount numeric, order_currency text, event_amount numeric, event_currency text)
returns text language sql immutable as $$
  select case when order_amount is not null then coalesce(order_currency, '')
    when event_amount is not null then coalesce(event_currency, order_currency, '') else '' end
$$;

-- By a trigger: sales are inserted or updated by one statement ("on conflict"), which does not tell what was there before.
create function conversion_sums_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into conversion_sums_added
    select tenant_id, date_trunc('minute', occurred_at, 'UTC'), coalesce(event_type, ''), conversion_type, source,
      conversion_currency(order_amount, order_currency, event_amount, event_currency),
      count(*), coalesce(sum(coalesce(order_amount, event_amount)), 0)
    from new_rows where listed group by 1, 2, 3, 4, 5, 6;
  elsif tg_op = 'DELETE' then
    insert into conversion_sums_added
    select tenant_id, date_trunc('minute', occurred_at, 'UTC'), coalesce(event_type, ''), conversion_type, source,
      conversion_currency(order_amount, order_currency, event_amount, event_currency),
      -count(*), -coalesce(sum(coalesce(order_amount, event_amount)), 0)
    from old_rows where listed group by 1, 2, 3, 4, 5, 6;
  else
    insert into conversion_sums_added
    select tenant_id, date_trunc('minute', occurred_at, 'UTC'), coalesce(event_type, ''), conversion_type, source,
      conversion_currency(order_amount, order_currency, event_amount, event_currency),
      sum(sign), coalesce(sum(sign * coalesce(order_amount, event_amount)), 0)
    from (select 1 as sign, * from new_rows union all select -1, * from old_rows) changed
    where listed group by 1, 2, 3, 4, 5, 6
    having sum(sign) <> 0 or sum(sign * coalesce(order_amount, event_amount)) <> 0;
  end if;
  return null;
end $$;
create trigger conversion_sums_inserted after insert on conversions referencing new table as new_rows
  for each statement execute function conversion_sums_changed();
create trigger conversion_sums_updated after update on conversions referencing old table as old_rows new table as new_rows
  for each statement execute function conversion_sums_changed();
create trigger conversion_sums_deleted after delete on conversions referencing old table as old_rows
  for each statement execute function conversion_sums_changed();

insert into conversion_sums (tenant_id, grain, at, event_type, conversion_type, source, currency, count, amount)
select tenant_id, grain, date_trunc(grain, occurred_at, 'UTC'), coalesce(event_type, ''), conversion_type, source,
  conversion_currency(order_amount, order_currency, event_amount, event_currency),
  count(*), coalesce(sum(coalesce(order_amount, event_amount)), 0)
from conversions cross join unnest(array['minute', 'hour', 'day']) as g (grain)
where listed group by 1, 2, 3, 4, 5, 6, 7;
