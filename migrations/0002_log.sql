-- The log: append-only, one range partition a day, dropped after the retention time.
-- (xid, ord) is the position: everything below pg_snapshot_xmin() is final, so a reader that stays below it
-- never skips a slow concurrent commit, and needs no sequence.
create table log (
  partition smallint not null,
  xid xid8 not null default pg_current_xact_id(),
  ord int not null,
  id uuid not null,
  tenant_id int not null,
  kind text not null,
  ordering_key text not null,
  received_at timestamptz not null,
  context text not null,
  body_bytes int not null,
  body text not null
) partition by range (received_at);
-- Read once and dropped after days: compressing it would cost more than it saves.
alter table log alter column body set storage external;
create index log_by_position on log (partition, xid, ord);
-- An entry's id carries its time: this finds it without a second b-tree to maintain.
create index log_by_time on log using brin (received_at) with (pages_per_range = 16, autosummarize = on);

create table log_cursors (
  partition smallint primary key,
  xid xid8 not null default '0',
  ord int not null default 0,
  updated_at timestamptz not null default now()
) with (fillfactor = 50);

-- Entries whose application failed and is tried again later, and the later entries of the same ordering key
-- that wait behind them. `lane` is the log and partition they came from.
create table parked_entries (
  lane text collate "C" not null,
  place bigint generated always as identity,
  id uuid not null,
  tenant_id int not null,
  kind text not null,
  ordering_key text not null,
  received_at timestamptz not null,
  context text not null,
  body text not null,
  attempts int not null,
  next_attempt_at timestamptz not null,
  last_error text,
  primary key (lane, place)
);

create table dead_letters (
  tenant_id int not null,
  id uuid not null,
  kind text not null,
  ordering_key text not null,
  source_id text collate "C",
  inbound_event_id text,
  reason text not null,
  error text not null,
  attempts int not null,
  received_at timestamptz not null,
  -- to the millisecond, as it is shown: a page's last row tells where the next one begins
  failed_at timestamptz(3) not null default now(),
  replayed_at timestamptz,
  -- the id under which a replay went in
  replayed_as uuid,
  context text not null,
  body text not null,
  primary key (tenant_id, id)
);
create index dead_letters_by_time on dead_letters (tenant_id, failed_at desc, id desc);
create index dead_letters_by_event on dead_letters (tenant_id, inbound_event_id) where inbound_event_id is not null;

-- Keys are kept 30 days; a period is 10 days, and goes by dropping its partition.
create table idempotency_keys (
  period int not null,
  tenant_id int not null,
  key text collate "C" not null,
  operation_id uuid not null,
  body_hash bytea not null,
  entity_type text not null,
  record_id text,
  created_at timestamptz not null default now(),
  primary key (tenant_id, key, period)
) partition by range (period);

-- What became of an accepted write. Rows come only from the pipeline; before that, the entry is in the log.
create table operations (
  tenant_id int not null,
  id uuid not null,
  received_at timestamptz not null,
  status text not null check (status in ('applied', 'superseded', 'failed')),
  entity_type text not null,
  record_id text,
  applied_at timestamptz not null default now(),
  error text,
  primary key (tenant_id, id, received_at)
) partition by range (received_at);
