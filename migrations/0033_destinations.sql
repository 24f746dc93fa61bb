-- Where Kontor sends what took effect.
create table destinations (
  id text collate "C" primary key,
  tenant_id int not null references tenants (id) on delete cascade,
  name text not null,
  url text not null,
  what text[] not null,
  -- exact names or prefix*; none: all events
  event_types text[] not null default '{}',
  enabled boolean not null default true,
  -- why Kontor disabled it; null where somebody did
  disabled_reason text,
  -- [{sealed, hint, expires_at}]: encrypted under the master key; two while they are rotated
  secrets jsonb not null,
  -- own request headers, as JSON encrypted under the master key: there are credentials among them
  headers text,
  created_by text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index destinations_by_tenant on destinations (tenant_id, created_at);
-- Workers remember who wants what.
create trigger destinations_changed after insert or delete or update on destinations
  for each statement execute function config_changed();

-- How sending goes, and which node does it: not in the table above, whose changes are told to all nodes.
create table destination_states (
  destination_id text collate "C" primary key references destinations (id) on delete cascade,
  owner uuid,
  leased_until timestamptz not null default '-infinity',
  last_attempt_at timestamptz,
  last_success_at timestamptz,
  -- the first failure since the last success
  failing_since timestamptz,
  last_status int,
  last_error text
) with (fillfactor = 50);

-- What destinations are told, once however many there are: written with the effects, in tenants that have a destination.
create table outbox (
  at timestamptz not null,
  tenant_id int not null,
  id uuid not null,
  what text collate "C" not null,
  type text collate "C" not null,
  -- what it is about: an event, contact/ID, a conversion, an account
  object text collate "C" not null,
  bytes int not null,
  -- JSON as it is sent
  data text not null,
  primary key (tenant_id, id, at)
) partition by range (at);
create index outbox_by_time on outbox (tenant_id, at, id);

-- What is still to be sent. A message that is gone from the outbox is not sent.
create table delivery_queue (
  destination_id text collate "C" not null,
  id uuid not null,
  at timestamptz not null,
  tenant_id int not null,
  attempts int not null default 0,
  next_attempt_at timestamptz not null,
  primary key (destination_id, id)
);
create index delivery_queue_by_time on delivery_queue (destination_id, next_attempt_at);

create table delivery_attempts (
  attempted_at timestamptz not null,
  tenant_id int not null,
  destination_id text collate "C" not null,
  id uuid not null,
  type text collate "C" not null,
  attempt int not null,
  outcome text not null check (outcome in ('delivered', 'retrying', 'failed')),
  status int,
  error text,
  -- how the answer began
  response text,
  duration_ms int not null,
  next_attempt_at timestamptz
) partition by range (attempted_at);
create index delivery_attempts_by_time on delivery_attempts (tenant_id, destination_id, attempted_at, id);

-- Up to when movements were told to destinations: those that lie ahead (a cancellation, the end of a discount) are told in their time.
create table movements_told (
  one_row boolean primary key default true check (one_row),
  until timestamptz not null
);
insert into movements_told (until) values (now());
