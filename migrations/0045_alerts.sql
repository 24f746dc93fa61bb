-- What a tenant is warned of. One row from when a rule is first met until it is resolved; then it is history.
create table alerts (
  id uuid primary key,
  tenant_id int not null,
  rule text collate "C" not null,
  -- which source or currency; '' where there is one of the tenant
  subject text collate "C" not null,
  -- pending: met, but not for long enough
  state text not null check (state in ('pending', 'raised', 'resolved')),
  -- evaluations in a row that spoke against the state
  streak int not null,
  value float8 not null,
  threshold float8 not null,
  summary text not null,
  began_at timestamptz not null,
  raised_at timestamptz,
  resolved_at timestamptz
);
create unique index alerts_open on alerts (tenant_id, rule, subject) where state <> 'resolved';
create index alerts_by_time on alerts (tenant_id, began_at desc, id);

-- Thresholds by rule, or null for off; what is not named is as by default.
alter table tenants add column alert_rules jsonb not null default '{}';

-- Which evaluation was the last, of all nodes.
create table alert_clock (
  one_row boolean primary key default true check (one_row),
  evaluated_at timestamptz not null
);
insert into alert_clock (evaluated_at) values ('-infinity');

-- How a source usually sounds: how long it has been quiet, and the longest it was on each of the last days. Added up from one
-- evaluation to the next, so that a clock that jumps makes nobody silent.
create table source_rhythms (
  source_id text collate "C" primary key references sources (id) on delete cascade,
  last_at timestamptz not null,
  quiet_s float8 not null,
  -- {"<evaluated day>": seconds}
  longest jsonb not null
) with (fillfactor = 80);
