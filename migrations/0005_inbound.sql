create table sources (
  id text collate "C" primary key,
  tenant_id int not null references tenants (id) on delete cascade,
  name text not null,
  type text not null check (type in ('webhook', 'automation', 'cdp')),
  preset text,
  enabled boolean not null default true,
  -- [{hash, hint, expires_at}]: more than one while a token is being rotated
  tokens jsonb not null,
  -- [{sealed, hint, expires_at}]: encrypted under the master key; at most two
  signing_secrets jsonb not null default '[]',
  -- the other settings, as the API shows them
  config jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index sources_by_tenant on sources (tenant_id, created_at);
create trigger sources_changed after insert or delete or update on sources
  for each statement execute function config_changed();

create table receipts (
  tenant_id int not null,
  source_id text collate "C" not null,
  id uuid not null,
  received_at timestamptz not null,
  inbound_event_id text,
  event_type text,
  outcome text not null check (outcome in ('processed', 'duplicate', 'dropped', 'dead_letter')),
  detail text,
  written_at timestamptz not null default now()
) partition by range (received_at);
create index receipts_by_time on receipts (tenant_id, source_id, received_at, id);

create table archive (
  tenant_id int not null,
  id uuid not null,
  received_at timestamptz not null,
  source_id text collate "C" not null,
  -- JSON as text: it is read as a whole or not at all
  result text not null
) partition by range (received_at);
create index archive_by_id on archive (tenant_id, id);

-- The overflow lane of volume protection: what came in over a source's budget, until there is budget again.
create table overflow (
  source_id text collate "C" not null,
  position bigint generated always as identity,
  id uuid not null,
  tenant_id int not null,
  kind text not null,
  ordering_key text not null,
  received_at timestamptz not null,
  -- events in it, each worth one unit of the budget
  items int not null,
  context text not null,
  body_bytes int not null,
  body text not null,
  primary key (source_id, position)
);

-- A bounded sample of refused requests, for the people who run the source.
create table rejections (
  id bigint generated always as identity,
  tenant_id int not null,
  source_id text collate "C" not null,
  rejected_at timestamptz not null default now(),
  status int not null,
  code text not null,
  detail text not null,
  ip text,
  user_agent text,
  bytes int,
  -- how many more like it came, and were only counted
  suppressed int not null default 0
);
create index rejections_by_time on rejections (tenant_id, source_id, id);

-- What each source has used of its budget, where nodes share it (in the form that rate-limiter-flexible reads).
-- Unlogged: a crash only means fresh budgets.
create unlogged table volume_budgets (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
) with (fillfactor = 50);
