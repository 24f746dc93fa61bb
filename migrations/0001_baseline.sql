-- The schema of Kontor 0.1.0. Later changes are new files beside this one: a released migration is never edited.
--
--   1. Tenants, keys and settings      6. Events                  11. Alerts and retention
--   2. Audit and console sessions      7. Identity                12. Billing
--   3. The log                         8. Conversions             13. Customers
--   4. Failed and parked entries       9. Sources                 14. Views for BI tools
--   5. Records                        10. Destinations and archive
--
-- Conventions:
--   - Every key starts with tenant_id, unless a table belongs to the whole installation.
--   - Identifiers that clients choose are compared byte by byte: text collate "C".
--   - Tables that grow without limit are range partitions by time or by period. Retention drops whole partitions.
--   - A table with the column "singleton" has exactly one row.

-- ---------------------------------------------------------------------------------------------------------------------
-- 1. Tenants, keys and settings
-- ---------------------------------------------------------------------------------------------------------------------

create table tenants (
  id int generated always as identity primary key,
  name text not null unique,
  -- Event types that count as conversions. Null: the default list.
  conversion_types text[],
  -- The oldest occurred_at that events sent with a public key may have, in days before now. 0: no limit.
  -- Null: the setting KONTOR_EVENTS_FLOOR applies.
  events_floor_days int check (events_floor_days between 0 and 36500),
  -- What Kontor does with IP addresses of events: store them, store only their network, or drop them.
  ip_addresses text not null default 'keep' check (ip_addresses in ('keep', 'truncate', 'drop')),
  -- Thresholds by rule; null turns a rule off. Rules that are not listed use their default.
  alert_rules jsonb not null default '{}',
  created_at timestamptz not null default now()
);

-- Private, tracking and admin keys. Only hashes are stored.
create table api_keys (
  id text collate "C" primary key,
  -- Events refer to their key by this number, which is shorter.
  number int generated always as identity unique,
  -- An admin key may be limited to one tenant; every other key belongs to one.
  tenant_id int references tenants (id) on delete cascade,
  kind text not null check (kind in ('private', 'tracking', 'admin')),
  -- Admin keys only.
  role text check (role in ('viewer', 'operator', 'admin')),
  hash bytea not null unique,
  -- The last characters, for display.
  hint text not null,
  -- What the key is for; null: not named.
  name text,
  scopes text[] not null,
  -- A tracking key that only servers hold may link identifiers; one that is embedded in web pages may not.
  server boolean not null default false,
  -- Networks (CIDR) that the key is accepted from. Empty: from anywhere.
  allowed_addresses text[] not null default '{}',
  -- Of a tracking key: origins that may use it, event types and rate. Empty or null: no limit.
  limits jsonb not null default '{"origins": [], "event_types": [], "rate_limit": null}',
  -- The actor that created it; null if unknown. A stolen key may have created others.
  created_by text collate "C",
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint api_keys_role check ((kind = 'admin') = (role is not null)),
  constraint api_keys_tenant check (kind = 'admin' or tenant_id is not null)
);
create index api_keys_by_tenant on api_keys (tenant_id, created_at);
create index api_keys_by_creator on api_keys (created_by) where created_by is not null;

create table settings (
  name text primary key,
  value text not null
);

-- Identifies this installation. Together with log_database() it says which installation owns a NATS stream.
-- A restored backup is a new installation.
create table installation (
  id uuid not null default gen_random_uuid(),
  singleton boolean primary key default true check (singleton)
);
insert into installation default values;

-- Nodes cache keys, tenants and sources. Every change increments this version and sends a notification.
-- A node that listens is notified at once; a node behind a transaction pooler polls the version.
create table config_version (
  singleton boolean primary key default true check (singleton),
  version bigint not null
);
insert into config_version (version) values (1);

create function config_changed() returns trigger language plpgsql as $$
begin
  update config_version set version = version + 1;
  notify kontor_config;
  return null;
end $$;

create trigger tenants_changed after update or delete on tenants
  for each statement execute function config_changed();
create trigger api_keys_changed after insert or delete or update of scopes, expires_at, revoked_at, limits on api_keys
  for each statement execute function config_changed();

-- Which database role belongs to which tenant. A role without a row sees nothing in the views of kontor_bi.
create table sql_access (
  role text primary key,
  tenant_id int not null,
  name text not null,
  -- The hash of its password, as in pg_authid. PostgreSQL lets every role change its own password; Kontor restores it.
  verifier text not null,
  statement_seconds int not null,
  created_by text not null,
  created_at timestamptz not null default now()
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 2. Audit and console sessions
-- ---------------------------------------------------------------------------------------------------------------------

-- One row per change, written in the transaction that makes the change. tenant_id is no foreign key: the row outlives
-- the objects it describes.
create table audit (
  id uuid primary key,
  -- When the row was written, not when its transaction started: changes that waited for each other stay in order.
  at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  -- A key (key_…), a user of the command line (cli:name) or of the console (oidc:…).
  actor text not null,
  -- noun.verb
  action text not null,
  target text,
  -- Null: the change concerns the whole installation.
  tenant_id int,
  ip text,
  request_id text,
  before jsonb,
  after jsonb
);
create index audit_by_time on audit (at, id);
create index audit_by_tenant on audit (tenant_id, at, id);

create function reject_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of the audit are never changed or deleted';
end $$;
create trigger audit_is_final before update or delete or truncate on audit
  for each statement execute function reject_audit_change();

-- People who sign in to the console with a password. The link of an invitation holds a random token, the row its SHA-256.
create table console_users (
  id text collate "C" primary key,
  -- Lower case.
  name text not null unique,
  -- scrypt$N$r$p$salt$key. Null until the invitation is accepted.
  password text,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  -- Null: all tenants.
  tenant_id int references tenants (id),
  invitation bytea unique,
  invited_until timestamptz,
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  created_by text not null,
  last_sign_in_at timestamptz
);

-- Failed sign-ins of the last 15 minutes. key: hash of a name or of a network address.
create table sign_in_failures (
  key bytea primary key,
  failures int not null,
  since timestamptz not null default now()
);

-- Sessions of the console, one row per browser. The cookie holds a random token, the row its SHA-256. A session ends by
-- sign-out, when the user's role changes, when the user, key or provider is no longer valid, or at expires_at. Each sign-in
-- deletes expired rows.
create table console_sessions (
  hash bytea primary key,
  id text collate "C" not null unique,
  -- The URL of the identity provider, local (subject: a user) or key (subject: an admin key).
  issuer text not null,
  subject text not null,
  -- As in the audit: oidc:ada@example.com, user:ada@example.com or the id of the key
  actor text not null,
  role text not null check (role in ('viewer', 'operator', 'admin')),
  -- Null: all tenants.
  tenant_id int references tenants (id),
  ip text,
  user_agent text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index console_sessions_by_user on console_sessions (issuer, subject);
create index console_sessions_by_expiry on console_sessions (expires_at);

-- ---------------------------------------------------------------------------------------------------------------------
-- 3. The log
-- ---------------------------------------------------------------------------------------------------------------------

-- Transaction ids have a meaning in one database cluster only. When the database continues in another cluster (a
-- restored dump, a logical switch-over), a new epoch starts. All positions of earlier epochs come before it.
create table log_epochs (
  epoch int primary key,
  -- log_database() of the database that the epoch belongs to.
  database text not null,
  started_at timestamptz not null default now()
);

-- The log is append-only: one range partition per day, dropped after the retention time. The position of an entry is
-- (epoch, xid, ord). Everything below pg_snapshot_xmin() is final, so a reader that stays below it never skips a slow
-- concurrent commit, and no sequence is needed.
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
  body text not null,
  epoch int not null default 1,
  -- The body compressed with zstd, if it is large. body is then empty.
  packed bytea
) partition by range (received_at);
-- Kontor compresses what is worth it.
alter table log alter column body set storage external, alter column packed set storage external;
create index log_by_position on log (partition, epoch, xid, ord);
-- The id of an entry contains its time, so this index finds an entry by id without a second b-tree.
create index log_by_time on log using brin (received_at) with (pages_per_range = 16, autosummarize = on);

create table log_cursors (
  partition smallint primary key,
  xid xid8 not null default '0',
  ord int not null default 0,
  updated_at timestamptz not null default now(),
  epoch int not null default 1
) with (fillfactor = 50);

-- Identifies this database: the cluster's system identifier and the database's oid. A database that is dropped and
-- restored in the same cluster gets a new oid: its positions would still be valid, but the caches of nodes would not.
-- Managed services may forbid pg_control_system(); they then count as one cluster. PostgreSQL reads the identifier from
-- a file, so each session asks once and keeps the answer in a session variable.
create function log_database() returns text language plpgsql stable as $$
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

-- Every append and every take calls this. It raises KT001 if the log continues in another epoch or database: an entry
-- written there would never be read. Comparing the session variable first takes 25 µs instead of 54 µs.
create function is_log_epoch(expected int) returns boolean language plpgsql stable as $$
declare
  latest log_epochs;
begin
  select * into latest from log_epochs order by epoch desc limit 1;
  if latest.epoch = expected
     and (latest.database = current_setting('kontor.database', true) or latest.database = log_database()) then
    return true;
  end if;
  raise exception 'the log is in another epoch than %', expected using errcode = 'KT001';
end $$;

-- Returns the epoch of this database and starts it if the latest epoch belongs to another one. The caller holds the
-- advisory lock LOCKS.epoch.
create function enter_log_epoch() returns int language plpgsql as $$
declare
  latest log_epochs;
begin
  select * into latest from log_epochs order by epoch desc limit 1;
  if latest.database is distinct from log_database() then
    insert into log_epochs (epoch, database) values (coalesce(latest.epoch, 0) + 1, log_database()) returning * into latest;
    -- The caches of nodes may be newer than the dump. The version jumps past every version they can have seen.
    update config_version set version = version + 1000000;
  end if;
  return latest.epoch;
end $$;

insert into log_epochs (epoch, database) values (1, log_database());

-- Idempotency keys are valid for 30 days. A period is 10 days; retention drops its partition.
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

-- Streams of a log on NATS JetStream. Cursors are in PostgreSQL so that they commit together with the effects.
create table jetstream_streams (
  name text collate "C" primary key,
  -- When NATS created it. A stream that is created again under the same name starts at sequence number 1.
  created text not null,
  partitions int not null,
  -- Without credentials. A start without NATS_URL checks there whether entries are unread.
  servers text not null,
  -- Unread entries when a worker last looked, which it does every few seconds.
  unread bigint not null default 0,
  seen_at timestamptz not null default now(),
  -- The last writer stopped in order, and nothing was unread.
  is_drained boolean not null default false,
  -- When Kontor stopped using the stream. Its cursors stay: processed messages are still in it and would be read again.
  left_at timestamptz,
  -- Since when entries are unread, as far as a worker has looked.
  unread_since timestamptz
);

-- Everything below seq is read, and the first `ord` entries of the message at seq.
create table jetstream_cursors (
  stream text collate "C" not null,
  partition smallint not null,
  seq bigint not null default 1,
  ord int not null default 0,
  updated_at timestamptz not null default now(),
  -- The id of the message before this position; null: unknown. If another message has its number, the server lost its
  -- newest messages and assigns their numbers again.
  last_id text collate "C",
  -- The newest time, by NATS's clock, of the messages read so far. Messages after such a loss are newer.
  last_at timestamptz,
  primary key (stream, partition)
) with (fillfactor = 50);

-- Messages that Kontor skipped because no entries can be read from them: messages of other programs, and damaged ones
-- of its own. Rows are kept as long as the stream keeps its messages.
create table jetstream_skipped_messages (
  stream text collate "C" not null,
  seq bigint not null,
  -- By NATS's clock. A stream that is created again assigns the same numbers again.
  stored_at timestamptz not null,
  subject text not null,
  reason text not null,
  -- Written by another program.
  is_foreign boolean not null,
  -- Only of Kontor's own messages that belong to several tenants. Those of one tenant are its dead letters.
  payload bytea,
  skipped_at timestamptz not null default now(),
  primary key (stream, seq, stored_at)
);

-- Processes that write to a stream. Each updates its row every few seconds and deletes it when it stops in order.
-- Kontor does not leave a stream that other processes write to.
create table jetstream_writers (
  stream text collate "C" not null,
  process uuid not null,
  -- Host and process id, for display.
  name text not null,
  -- Which creation of the stream it writes to (jetstream_streams.created). Null: it has not found the stream yet.
  created text,
  -- What an acknowledged entry survives, as this process knows: synced, replicated or process-crash only.
  promise text,
  -- Why its last publish failed: full or silent. Null: it did not.
  failing text,
  seen_at timestamptz not null default now(),
  primary key (stream, process)
);

-- The oldest and the newest unread message of each partition when a node last looked, and how many entries were unread.
-- If one of them is gone before a cursor has passed it, entries were lost.
create table jetstream_unread (
  stream text collate "C" not null,
  partition smallint not null,
  -- Which creation of the stream (jetstream_streams.created).
  created text not null,
  first_seq bigint not null,
  seq bigint not null,
  -- The id of the newest message: a server that lost it gives its number to another one.
  id text collate "C",
  entries bigint not null,
  seen_at timestamptz not null default now(),
  primary key (stream, partition)
);

-- Entries that were acknowledged and lost before they were processed: a stream was deleted or purged, or lost its disk.
create table jetstream_losses (
  stream text collate "C" not null,
  noticed_at timestamptz not null default now(),
  -- An upper bound: what was unread, and what nodes acknowledged since.
  entries bigint not null,
  seen_at timestamptz not null,
  -- The nodes whose last acknowledged entries are in it.
  counted_by uuid[] not null default '{}'
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 4. Failed and parked entries
-- ---------------------------------------------------------------------------------------------------------------------

-- Entries that wait: for their retry, for the next portion of a large entry, or behind an earlier entry of the same
-- ordering key.
create table parked_entries (
  -- The log and the partition that the entry came from: postgres/3
  partition text collate "C" not null,
  -- A lower number was parked earlier.
  parked_id bigint generated always as identity,
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
  primary key (partition, parked_id)
);
-- The rest of a large entry is soon applied: compression would cost more than it saves.
alter table parked_entries alter column body set storage external;

create table dead_letters (
  tenant_id int not null,
  id uuid not null,
  kind text not null,
  ordering_key text not null,
  source_id text collate "C",
  inbound_event_id text,
  reason text not null,
  error text not null,
  -- The error without the parts that vary between failures of one kind, for grouping. Null: written by an older version.
  cause text,
  attempts int not null,
  received_at timestamptz not null,
  -- In milliseconds, as the API shows it: a page starts after the last row of the page before.
  failed_at timestamptz(3) not null default now(),
  replayed_at timestamptz,
  -- The id of the entry that replayed it.
  replayed_as uuid,
  context text not null,
  body text not null,
  primary key (tenant_id, id)
);
create index dead_letters_by_time on dead_letters (tenant_id, failed_at desc, id desc);
create index dead_letters_by_event on dead_letters (tenant_id, inbound_event_id) where inbound_event_id is not null;
-- For retention, over all tenants.
create index dead_letters_by_age on dead_letters (failed_at);

-- Partitions of the log that failed for a reason outside of any entry, and when they last did.
create table stalled_partitions (
  partition text collate "C" primary key,
  failed_at timestamptz not null,
  error text not null
);

-- A sample of rejected requests. Those to a source have a source_id, those with a key have a key_id, a route, a cause
-- and the start of the body.
create table rejections (
  id bigint generated always as identity,
  tenant_id int not null,
  source_id text collate "C",
  key_id text,
  rejected_at timestamptz not null default now(),
  route text,
  status int not null,
  code text not null,
  -- The detail without the parts that vary, for grouping.
  cause text,
  detail text not null,
  ip text,
  user_agent text,
  bytes int,
  body text,
  -- Similar requests that were only counted.
  suppressed int not null default 0,
  -- The sender presented a token or a valid signature. Unauthenticated requests say nothing about the source.
  is_authenticated boolean not null default true
);
create index rejections_by_time on rejections (tenant_id, source_id, id);
create index rejections_of_keys on rejections (tenant_id, id) where source_id is null;

-- Counts of all rejected requests that had a valid key.
create table rejection_sums (
  tenant_id int not null,
  hour timestamptz not null,
  route text collate "C" not null,
  code text collate "C" not null,
  cause text collate "C" not null,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (tenant_id, hour, route, code, cause)
) with (fillfactor = 70);

-- ---------------------------------------------------------------------------------------------------------------------
-- 5. Records
-- ---------------------------------------------------------------------------------------------------------------------

create table records (
  tenant_id int not null,
  entity_type text collate "C" not null,
  id text collate "C" not null,
  external_id text collate "C",
  -- Of the newest write, or delete by id. A delete by another identifier does not change it: see record_tombstones.
  source_updated_at timestamptz not null,
  -- The entry that wrote it. Of equal source times, the later arrival wins.
  entry_id uuid not null,
  deleted boolean not null,
  -- Null when deleted.
  data jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Identifiers of products. Longer values are not identifiers and stay in data.
  sku text collate "C"
    generated always as (case when entity_type = 'product' and length(data ->> 'sku') <= 255 then data ->> 'sku' end) stored,
  code text collate "C"
    generated always as (case when entity_type = 'product' and length(data ->> 'code') <= 255 then data ->> 'code' end) stored,
  primary key (tenant_id, entity_type, id)
) with (fillfactor = 90);
create index records_by_sku on records (tenant_id, sku) where sku is not null;
create index records_by_code on records (tenant_id, code) where code is not null;
create index records_by_external_id on records (tenant_id, external_id) where external_id is not null;
-- For lists. All leading columns are expressions: on a table without statistics the planner otherwise takes this index
-- for lookups by primary key, reads everything of the type, and keeps that plan when the table has grown.
create index records_by_update on records ((tenant_id::bigint), (entity_type || ''), updated_at, id);

-- For the search: the start of a contact's name and of its last word. Cut to 200 characters, because an index row has a
-- size limit.
create function contact_name(data jsonb) returns text language sql immutable parallel safe as $$
  select lower(left(coalesce(nullif(data ->> 'name', ''), btrim(
    coalesce(data ->> 'firstName', data ->> 'first_name', '') || ' ' || coalesce(data ->> 'lastName', data ->> 'last_name', ''))), 200))
$$;
-- The tenant is part of the text: with tenant_id as the first column, a table without statistics makes any other index
-- of the tenant look equally good.
create index contacts_by_name on records ((tenant_id::text || ' ' || contact_name(data)) collate "C")
  where entity_type = 'contact' and not deleted;
create index contacts_by_last_name
  on records ((tenant_id::text || ' ' || split_part(contact_name(data), ' ', -1)) collate "C")
  where entity_type = 'contact' and not deleted;

-- A delete by external_id, sku or code. It is kept so that an older write that arrives later stays deleted.
create table record_tombstones (
  tenant_id int not null,
  entity_type text collate "C" not null,
  name text collate "C" not null check (name in ('external_id', 'sku', 'code')),
  value text collate "C" not null,
  source_updated_at timestamptz not null,
  entry_id uuid not null,
  primary key (tenant_id, entity_type, name, value)
);

-- The result of an accepted write. Only the pipeline inserts rows; until then the entry is in the log.
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

-- Handles of products, from the shop's webhooks. A file of products contains only handles and finds the product by them.
create table shop_handles (
  tenant_id int not null,
  handle text collate "C" not null,
  -- The id of the product's record, or the first part of the ids of its variants' records.
  product_id text collate "C" not null,
  -- By the shop's clock. If two products had the handle, the latest one keeps it.
  source_updated_at timestamptz not null,
  primary key (tenant_id, handle)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 6. Events
-- ---------------------------------------------------------------------------------------------------------------------

-- Most rows of an installation are in this table, so each byte of a row counts. Columns of a fixed length come first: between them, no
-- space is lost to alignment.
create table events (
  id uuid not null,
  occurred_at timestamptz not null,
  received_at timestamptz not null,
  node bigint,
  tenant_id int not null,
  -- The number of the key that sent it, so that events sent with a public key can be found and deleted.
  key int,
  -- Its position in the request, and the number of items; null: the request had a single event.
  batch_index int,
  batch_size int,
  conversion boolean not null,
  event_type text collate "C" not null,
  source text collate "C" not null,
  source_config_id text collate "C",
  inbound_event_id text,
  -- Empty: the same as inbound_event_id.
  provider_event_id text,
  visitor text,
  session_id text,
  -- The signed-in user that the event named: profiles can be rebuilt from the events that remain after a purge.
  user_id text,
  -- The type of a CDP message.
  kind text collate "C",
  ip text,
  -- JSON as received, made storable. Text instead of jsonb: it is validated before, read as a whole, and parsing it took
  -- a third of an event's time in PostgreSQL. Query it with payload::jsonb.
  payload text not null,
  -- JSON. Null: only the content type application/json.
  headers text,
  -- JSON: what else is known about the event. Null: nothing. Read the whole with event_meta().
  meta text
) partition by range (occurred_at);
create index events_by_time on events (tenant_id, occurred_at, id) where not conversion;
-- The hash of the type is shorter. A query compares both: hashtext(event_type) = hashtext($1) and event_type = $1.
create index events_by_type on events (tenant_id, hashtext(event_type), occurred_at, id) where not conversion;
-- Finds an event by its id. Ids start with the time of receipt in milliseconds, and the items of a request share it. Equal keys are
-- stored once, so this index is a fifth as large as one on the id. A query compares both, as with the type.
create index events_by_receipt on events (substring(uuid_send(id) from 1 for 6));
-- For the timeline of a person. Without the time: equal keys are then stored once, and the index is a third as large.
create index events_by_node on events (tenant_id, node) where node is not null;
create table events_before_2000 partition of events for values from (minvalue) to ('2000-01-01 00:00:00+00');

-- `meta` as the API returns it. `rest`: the column meta.
create function event_meta(kind text, ip text, batch_index int, batch_size int, rest text) returns text language sql stable
parallel safe as $$
  select '{' || concat_ws(',', '"kind":' || to_json(kind), '"ip":' || to_json(ip), '"batch_index":' || batch_index,
    '"batch_size":' || batch_size, substr(rest, 2, length(rest) - 2)) || '}'
$$;

-- Deduplication. key: hash of the source and the sender's event id. A period is a month.
create table processed_events (
  period int not null,
  tenant_id int not null,
  key uuid not null,
  event_id uuid not null,
  primary key (tenant_id, key, period)
) partition by range (period);

-- Series of events and conversions are read from sums by minute, quarter of an hour and day (UTC). Sums of events by
-- minute are kept for three days. Each transaction adds one row per minute, type and source that it changed, so writers
-- never wait for each other. A job folds these rows into the sums. A series adds up both.
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
  grain text collate "C" not null check (grain in ('minute', 'quarter', 'day')),
  -- True: the sum of all types; event_type is ''. A sender can invent as many types as events.
  all_types boolean not null,
  at timestamptz not null,
  event_type text collate "C" not null,
  source text collate "C" not null,
  count bigint not null,
  primary key (tenant_id, grain, all_types, at, event_type, source)
) with (fillfactor = 80);

-- Time ranges whose events retention dropped. Their rows in event_sums no longer count; a job deletes them.
create table event_sums_dropped (
  since timestamptz not null,
  until timestamptz not null
);

-- The events of one day (UTC) in columns, for questions about many events: visitors and funnels read 9 bytes per event
-- instead of the events. A job computes a day when it is over and has not changed for some minutes. Folding the sums of a
-- day deletes its columns; while event_sums_added has rows of a day, its columns are outdated and are not read.
create table event_days (
  tenant_id int not null,
  day date not null,
  changed_at timestamptz not null,
  -- Hashes of the visitor ids of each quarter of an hour, and its number from 0. Null: not computed.
  visitors bigint[],
  quarters smallint[],
  -- Events with a node, ordered by time and id: 5 bytes with the node, 4 with the milliseconds since the start of the day, and
  -- 3 with the index of the kind. The kinds are JSON: the event type, of page views the path, and the device.
  nodes bytea,
  times bytea,
  kinds bytea,
  kind_names text,
  primary key (tenant_id, day)
);
create index event_days_changed on event_days (changed_at) where visitors is null;

-- ---------------------------------------------------------------------------------------------------------------------
-- 7. Identity
-- ---------------------------------------------------------------------------------------------------------------------

-- One row per identifier of a person: a visitor id, a user id, an e-mail address or a contact id. Identifiers seen
-- together share a profile. Events point to a node and read the profile through it, so a merge rewrites the nodes of
-- the smaller profile and no event. An identifier belongs to one person at a time: when it moves to another person, its
-- old node is retired and stays with the events of the first person.
create sequence identity_nodes;
create table identities (
  tenant_id int not null,
  node bigint not null,
  kind text collate "C" not null check (kind in ('visitor', 'user', 'email', 'contact')),
  value text collate "C" not null,
  profile bigint not null,
  first_seen_at timestamptz not null default now(),
  retired_at timestamptz,
  -- A record, a signed source, a server key or an operator named it, not only an event that anyone could have sent.
  verified boolean not null default false,
  -- Other input than a record did. What only records named is no longer verified when they no longer name it.
  verified_by_input boolean not null default false,
  -- The last event of a customer, to about 15 minutes. Null for visitors who are no customers.
  last_seen_at timestamptz,
  -- Of a visitor id: the node of the user id, contact id or address that it was seen with; and, for an address, the user id
  -- or contact id that it was seen with before.
  seen_with bigint,
  seen_after bigint
) with (fillfactor = 90);
create unique index identities_by_value on identities (tenant_id, kind, value) where retired_at is null;
create unique index identities_by_node on identities (tenant_id, node) include (profile);
create index identities_by_profile on identities (tenant_id, profile);
-- The nodes of a visitor id that are not active.
create index identities_retired on identities (tenant_id, kind, value) where retired_at is not null;

-- Two identifiers that appeared together, and the input that said so first. Profiles are derived from these links
-- (src/domain/identity/linking.ts). A link between nodes of two profiles is a claim: it is shown and connects nothing.
create table identity_links (
  tenant_id int not null,
  -- The smaller node, and the larger one.
  a bigint not null,
  b bigint not null,
  verified boolean not null,
  cause text not null check (cause in ('event', 'record', 'sale', 'command')),
  cause_id text not null,
  -- Links made by events, records and operators stand beside each other, so that removing one restores the former state.
  origin text not null generated always as (case when cause in ('record', 'command') then cause else 'event' end) stored,
  -- When the input was received.
  linked_at timestamptz not null,
  -- An operator undid the link; or, with the time of the link, a limit was reached; or, with -infinity, its records no
  -- longer have it. It connects nothing, but an erasure of one still finds the other.
  undone_at timestamptz,
  primary key (tenant_id, a, b, origin)
) with (fillfactor = 90);
create index identity_links_by_b on identity_links (tenant_id, b);
create index identity_links_used_by_a on identity_links (tenant_id, a) where undone_at is null;
create index identity_links_used_by_b on identity_links (tenant_id, b) where undone_at is null;
create index identity_links_by_sale on identity_links (tenant_id, cause_id) where cause = 'sale';
-- Pairs that a limit kept apart, for a metric.
create index identity_links_over_limit on identity_links (tenant_id) where undone_at = linked_at;
create index identity_links_by_event on identity_links (tenant_id, cause_id) where cause = 'event';

-- The pairs of identifiers in the current version of each record. A link of origin `record` exists as long as one of these
-- rows has its pair. A record with one identifier has one row, with this node twice.
create table record_links (
  tenant_id int not null,
  a bigint not null,
  b bigint not null,
  -- `contact/…` or `order/…`.
  record text collate "C" not null,
  linked_at timestamptz not null,
  primary key (tenant_id, a, b, record)
);
create index record_links_by_record on record_links (tenant_id, record);
create index record_links_by_b on record_links (tenant_id, b);

-- Workers cache nodes. The version changes when an identifier gets a new node, or when a profile is split.
create table identity_versions (
  tenant_id int primary key,
  version bigint not null
) with (fillfactor = 50);

-- The first touch of a node: where the person came from. A touch with a source precedes a direct one.
create table touches (
  tenant_id int not null,
  node bigint not null,
  -- The first touch of each kind counts: of verified events, of unverified ones with a source, of unverified direct ones.
  -- Unverified touches count up to the first payment of an account, so both kinds are needed to find the first one then.
  kind text collate "C" not null check (kind in ('verified', 'source', 'direct')),
  direct boolean not null,
  occurred_at timestamptz not null,
  received_at timestamptz not null,
  event_id uuid not null,
  source text not null,
  medium text,
  campaign text,
  primary key (tenant_id, node, kind)
) with (fillfactor = 90);
create index touches_by_time on touches (tenant_id, occurred_at);

-- An erasure is a job that reports its progress and resumes after a crash.
create table erasures (
  tenant_id int not null,
  id uuid not null,
  requested_at timestamptz not null default now(),
  status text not null default 'completed' check (status in ('erasing', 'sweeping', 'completed')),
  -- Who is erased, as JSON. Deleted when the erasure is completed.
  subject text,
  subject_hash bytea not null,
  receipt jsonb not null,
  -- Heartbeat of the process that runs it.
  seen_at timestamptz,
  primary key (tenant_id, id)
);
create index erasures_running on erasures (seen_at) where status <> 'completed';
-- Workers cache the nodes of people. They drop their cache in the transaction that deletes the identifiers.
create trigger erasures_created after insert on erasures
  for each statement execute function config_changed();
create trigger erasures_status_changed after update of status on erasures
  for each statement execute function config_changed();

-- Identifiers of erased people that must not be recorded again: only the SHA-256 of "<tenant id> <kind> <value>".
create table suppressions (
  tenant_id int not null,
  hash bytea not null,
  kind text not null,
  erasure_id uuid not null,
  -- True: a worker saw this identifier together with a suppressed one.
  learned boolean not null default false,
  -- True: only unverified input links it to the person, so it suppresses only unverified input.
  unverified_only boolean not null default false,
  suppressed_at timestamptz not null default now(),
  primary key (tenant_id, hash)
);
create index suppressions_by_erasure on suppressions (tenant_id, erasure_id);

-- Workers cache which tenants have suppressions. Learned ones do not change that, and workers write them often:
-- they leave config_version unchanged.
create function suppressions_added() returns trigger language plpgsql as $$
begin
  if exists (select from added where not learned) then
    update config_version set version = version + 1;
    notify kontor_config;
  end if;
  return null;
end $$;
create trigger suppressions_added after insert on suppressions
  referencing new table as added for each statement execute function suppressions_added();
create trigger suppressions_deleted after delete on suppressions
  for each statement execute function config_changed();

-- How many events and records were suppressed.
create table suppression_counts (
  tenant_id int primary key,
  events bigint not null,
  records bigint not null,
  last_at timestamptz not null
);

-- A purge deletes the events that were sent with one tracking key. It is a job, like an erasure.
create table purges (
  tenant_id int not null,
  id uuid not null,
  requested_at timestamptz not null,
  key_id text collate "C" not null,
  received_since timestamptz not null,
  received_until timestamptz,
  status text not null check (status in ('running', 'completed')),
  seen_at timestamptz not null default now(),
  -- How often profiles were rebuilt.
  rounds int not null default 0,
  receipt jsonb not null,
  primary key (tenant_id, id)
);
create index purges_running on purges (seen_at) where status = 'running';
-- Workers drop their cache of nodes in every transaction that rebuilds profiles.
create trigger purges_round_finished after update of rounds on purges
  for each statement execute function config_changed();

-- Nodes of the deleted events, and the nodes that those events merged.
create table purge_nodes (
  tenant_id int not null,
  purge_id uuid not null,
  node bigint not null,
  primary key (tenant_id, purge_id, node)
);
-- Sales that the deleted events named: 'order:<id>' or 'invoice:<id>'.
create table purge_sales (
  tenant_id int not null,
  purge_id uuid not null,
  sale text collate "C" not null,
  primary key (tenant_id, purge_id, sale)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 8. Conversions
-- ---------------------------------------------------------------------------------------------------------------------

-- One row per sale. Three groups of columns are stored separately, so the row does not depend on what came first:
-- the order record (order_…), the event that describes the sale and the buyer that verified events name (event_…), and
-- the unverified events that name the sale (claim_…). The generated columns derive what is read from them.
create table conversions (
  tenant_id int not null,
  -- 'order:<order id>' if verified input reports the order. Until then 'order:<order id>', a newline and the id of the
  -- first event, one row per profile, because any visitor can send any order id. 'invoice:<id>', or 'event:<event id>'
  -- if no order is named.
  sale_key text collate "C" not null,
  id uuid not null,
  order_id text collate "C",
  order_state text check (order_state in ('live', 'deleted')),
  order_placed_at timestamptz,
  order_updated_at timestamptz,
  order_amount numeric,
  order_currency text,
  order_contact_id text collate "C",
  order_node bigint,
  -- The event that determines the sale. It is unverified only if no verified input reports the sale.
  event_id uuid,
  event_verified boolean,
  event_occurred_at timestamptz,
  event_type text collate "C",
  event_conversion_type text collate "C",
  event_source text,
  event_source_config_id text,
  event_object_id text,
  event_amount numeric,
  event_currency text,
  -- From the first verified event that has one. Event ids sort by time of receipt.
  event_visitor text,
  event_visitor_id uuid,
  event_node bigint,
  event_node_id uuid,
  -- The first unverified event received, and the number of unverified events.
  claim_id uuid,
  claim_visitor text,
  claim_node bigint,
  claims int not null default 0,
  -- Several visitors named the order. Such an order merges no profiles.
  several_visitors boolean not null default false,
  verified boolean not null generated always as (order_state is not null or event_verified is true) stored,
  -- Never null in a stored row. An upsert that only adds a claim proposes a row without a time.
  occurred_at timestamptz generated always as (coalesce(order_placed_at, event_occurred_at, order_updated_at)) stored,
  conversion_type text collate "C" not null
    generated always as (case when order_state = 'live' then 'order' else coalesce(event_conversion_type, 'order') end) stored,
  source text not null
    generated always as (case when order_state = 'live' then 'orders' else coalesce(event_source, 'orders') end) stored,
  -- The order, invoice or object that was bought.
  object_id text generated always as (case when order_state is null then event_object_id else order_id end) stored,
  visitor text generated always as (coalesce(event_visitor, claim_visitor)) stored,
  node bigint generated always as (coalesce(order_node, event_node, claim_node)) stored,
  listed boolean not null generated always as (order_state is distinct from 'deleted') stored,
  primary key (tenant_id, sale_key)
) with (fillfactor = 90);
create unique index conversions_by_id on conversions (tenant_id, id);
create index conversions_by_time on conversions (tenant_id, occurred_at, id) where listed;
create index conversions_by_type on conversions (tenant_id, conversion_type, occurred_at, id) where listed;
-- Rows that conversions_by_type does not find under their event type.
create index conversions_by_event_type on conversions (tenant_id, event_type, occurred_at, id)
  where listed and event_type <> conversion_type;
-- The unverified rows of an order, in order of receipt, and those of one person or of no one.
create index conversions_by_order on conversions (tenant_id, order_id, id) where order_id is not null and not verified;
create index conversions_by_claimant on conversions (tenant_id, claim_node, order_id)
  where order_id is not null and not verified;
-- The sales of a person, and everything that connects a sale with a person.
create index conversions_by_node on conversions (tenant_id, node) where listed;
create index conversions_by_event_node on conversions (tenant_id, event_node) where event_node is not null;
create index conversions_by_claim_node on conversions (tenant_id, claim_node) where claim_node is not null;
create index conversions_by_order_node on conversions (tenant_id, order_node) where order_node is not null;
create index conversions_by_contact on conversions (tenant_id, order_contact_id) where order_contact_id is not null;
-- For the metric: few sales have more claims than this.
create index conversions_by_claims on conversions (claims) where verified and claims > 20;

-- Orders that verified input reported and whose unverified rows are not all folded yet (`foldNextPortion`).
create table sale_folds (
  tenant_id int not null,
  order_id text collate "C" not null,
  requested_at timestamptz not null default now(),
  primary key (tenant_id, order_id)
);

-- Sums as for events: see event_sums_added.
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
  grain text collate "C" not null check (grain in ('minute', 'quarter', 'day')),
  at timestamptz not null,
  -- '' if only the order's record describes the sale.
  event_type text collate "C" not null,
  conversion_type text collate "C" not null,
  source text collate "C" not null,
  -- '' if there is no amount, or an amount without a currency.
  currency text collate "C" not null,
  count bigint not null,
  amount numeric not null,
  primary key (tenant_id, grain, at, event_type, conversion_type, source, currency)
) with (fillfactor = 80);

-- The currency that the list of conversions shows; '' if there is nothing to add up.
create function conversion_currency(order_amount numeric, order_currency text, event_amount numeric, event_currency text)
returns text language sql immutable as $$
  select case when order_amount is not null then coalesce(order_currency, '')
    when event_amount is not null then coalesce(event_currency, order_currency, '') else '' end
$$;

-- A trigger, because sales are written with "insert … on conflict do update", which does not return the old rows.
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

-- ---------------------------------------------------------------------------------------------------------------------
-- 9. Sources
-- ---------------------------------------------------------------------------------------------------------------------

create table sources (
  id text collate "C" primary key,
  tenant_id int not null references tenants (id) on delete cascade,
  name text not null,
  type text not null check (type in ('webhook', 'automation', 'cdp')),
  preset text,
  enabled boolean not null default true,
  -- [{hash, hint, expires_at}]: more than one while a token is being rotated.
  tokens jsonb not null,
  -- [{sealed, hint, expires_at}]: encrypted with the master key; at most two.
  signing_secrets jsonb not null default '[]',
  -- The other settings, as the API shows them.
  config jsonb not null default '{}',
  -- Until then Kontor stores every request of the source in inbound_requests: someone listened in the last days.
  listened_until timestamptz,
  -- The actor that created it; null if unknown.
  created_by text collate "C",
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index sources_by_tenant on sources (tenant_id, created_at);
create index sources_by_creator on sources (created_by) where created_by is not null;
create trigger sources_changed after insert or delete or update on sources
  for each statement execute function config_changed();

-- The outcome of each inbound event.
create table receipts (
  tenant_id int not null,
  source_id text collate "C" not null,
  id uuid not null,
  received_at timestamptz not null,
  inbound_event_id text,
  event_type text,
  outcome text not null check (outcome in ('processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed')),
  detail text,
  -- Of a duplicate: the id of the first event.
  first_id uuid,
  written_at timestamptz not null default now()
) partition by range (received_at);
create index receipts_by_time on receipts (tenant_id, source_id, received_at, id);

-- The result of each inbound event.
create table archive (
  tenant_id int not null,
  id uuid not null,
  received_at timestamptz not null,
  source_id text collate "C" not null,
  -- JSON as text: it is read as a whole or not at all.
  result text not null
) partition by range (received_at);
create index archive_by_id on archive (tenant_id, id);

-- Requests to sources as received, for developers of what handles them (kontor listen). Kept for three days, for new
-- sources and for sources that someone listens to.
create table inbound_requests (
  tenant_id int not null,
  source_id text collate "C" not null,
  -- The position in the order of arrival. As in the log, everything below pg_snapshot_xmin() is final.
  xid xid8 not null default pg_current_xact_id(),
  ord int not null,
  id uuid not null,
  received_at timestamptz not null,
  -- JSON: [[name, value], …] in their order and spelling, without Kontor's credentials.
  headers text not null,
  -- JSON: the response.
  answer text not null,
  bytes int not null,
  body bytea not null,
  primary key (tenant_id, source_id, xid, ord)
);
create index inbound_requests_by_time on inbound_requests (received_at);

-- The overflow queue: entries over a source's budget wait here until there is budget again.
create table overflow (
  source_id text collate "C" not null,
  position bigint generated always as identity,
  id uuid not null,
  tenant_id int not null,
  kind text not null,
  ordering_key text not null,
  received_at timestamptz not null,
  -- Events in the entry. Each costs one unit of the budget.
  items int not null,
  context text not null,
  body_bytes int not null,
  body text not null,
  primary key (source_id, position)
);

-- The used budget of each source, shared by all nodes, in the format of rate-limiter-flexible.
-- Unlogged: a crash only resets the budgets.
create unlogged table volume_budgets (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
) with (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------------------------------
-- 10. Destinations and archive
-- ---------------------------------------------------------------------------------------------------------------------

create table destinations (
  id text collate "C" primary key,
  tenant_id int not null references tenants (id) on delete cascade,
  name text not null,
  type text not null default 'webhook' check (type in ('webhook', 'slack', 'email')),
  -- Of type email: mailto: and one address.
  url text not null,
  what text[] not null,
  -- Exact names or prefix*. Empty: all events.
  event_types text[] not null default '{}',
  -- Empty: the alerts of all rules.
  alert_rules text[] not null default '{}',
  enabled boolean not null default true,
  -- Why Kontor disabled it. Null if a user did.
  disabled_reason text,
  -- [{sealed, hint, expires_at}]: encrypted with the master key; two during a rotation.
  secrets jsonb not null,
  -- Additional request headers as JSON, encrypted with the master key: they may contain credentials.
  headers text,
  created_by text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index destinations_by_tenant on destinations (tenant_id, created_at);
-- Workers cache which destination wants what.
create trigger destinations_changed after insert or delete or update on destinations
  for each statement execute function config_changed();

-- The state of sending, and the node that sends. Separate from destinations, whose changes notify all nodes.
create table destination_states (
  destination_id text collate "C" primary key references destinations (id) on delete cascade,
  owner uuid,
  leased_until timestamptz not null default '-infinity',
  last_attempt_at timestamptz,
  last_success_at timestamptz,
  -- The first failure since the last success.
  failing_since timestamptz,
  last_status int,
  last_error text
) with (fillfactor = 50);

-- Messages to destinations, once for all destinations of a tenant. Written with the effects, only for tenants that have
-- a destination.
create table outbox (
  at timestamptz not null,
  tenant_id int not null,
  id uuid not null,
  what text collate "C" not null,
  type text collate "C" not null,
  -- What the message is about: an event, contact/ID, a conversion, an account.
  object text collate "C" not null,
  bytes int not null,
  -- JSON as it is sent.
  data text not null,
  primary key (tenant_id, id, at)
) partition by range (at);
create index outbox_by_time on outbox (tenant_id, at, id);

-- Messages that are not delivered yet. A message that is no longer in the outbox is not sent.
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
  -- The start of the response.
  response text,
  duration_ms int not null,
  next_attempt_at timestamptz
) partition by range (attempted_at);
create index delivery_attempts_by_time on delivery_attempts (tenant_id, destination_id, attempted_at, id);

-- Up to when destinations were notified of movements. A movement in the future (a cancellation, the end of a discount)
-- is sent when it takes effect.
create table movement_notifications (
  singleton boolean primary key default true check (singleton),
  until timestamptz not null
);
insert into movement_notifications (until) values (now());

-- Whether events and conversions are archived as files, and where.
create table archive_state (
  singleton boolean primary key default true check (singleton),
  enabled boolean not null default false,
  url text,
  -- Why Kontor disabled it. Null if a user did, or if it was never enabled.
  disabled_reason text
);
insert into archive_state default values;
-- Workers cache whether to fill archive_queue.
create trigger archive_state_changed after update on archive_state
  for each statement execute function config_changed();

-- The node that writes files, and its last failure. Separate from archive_state, whose changes notify all nodes.
create table archive_progress (
  singleton boolean primary key default true check (singleton),
  owner uuid,
  leased_until timestamptz not null default '-infinity',
  failed_at timestamptz,
  error text
);
insert into archive_progress default values;

-- Events and conversions that are in no file yet, written with the effects. No index: the queue is emptied from its
-- start.
create table archive_queue (
  tenant_id int not null,
  what text collate "C" not null check (what in ('events', 'conversions')),
  id uuid not null,
  -- Its hour is the folder of the file.
  received_at timestamptz not null,
  bytes int not null,
  -- Of a conversion: the row after the change, as JSON.
  body text
);

-- Every file. Its contents are decided before it is written, so every attempt writes the same file.
create table archive_files (
  id uuid primary key,
  tenant_id int not null,
  what text collate "C" not null,
  hour timestamptz not null,
  planned_at timestamptz not null default now(),
  -- Rows and bytes as written.
  rows int not null,
  bytes bigint,
  written_at timestamptz,
  -- Only until it is written.
  ids uuid[],
  bodies text[]
);
create index archive_files_unwritten on archive_files (planned_at) where written_at is null;
create index archive_files_by_tenant on archive_files (tenant_id, what, hour);

-- ---------------------------------------------------------------------------------------------------------------------
-- 11. Alerts and retention
-- ---------------------------------------------------------------------------------------------------------------------

-- One row from when a rule is first met until it is resolved. Then the row is history.
create table alerts (
  id uuid primary key,
  tenant_id int not null,
  rule text collate "C" not null,
  -- The source or currency; '' if the rule concerns the whole tenant.
  subject text collate "C" not null,
  -- pending: the rule is met, but not for long enough.
  state text not null check (state in ('pending', 'raised', 'resolved')),
  -- Consecutive evaluations that contradicted the state.
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

-- The last evaluation, of all nodes.
create table alert_clock (
  singleton boolean primary key default true check (singleton),
  evaluated_at timestamptz not null
);
insert into alert_clock (evaluated_at) values ('-infinity');

-- When the weekly digest of a tenant is sent, in its time zone. A tenant without a row uses the default.
create table digests (
  tenant_id int primary key references tenants (id) on delete cascade,
  weekday text not null default 'monday'
    check (weekday in ('monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday')),
  hour int not null default 8 check (hour between 0 and 23),
  -- The due time of the last digest that was queued, or of the last one before the tenant had recipients.
  due_at timestamptz
);

-- How long a source has been quiet, and its longest silence on each of the last days. Each evaluation adds to it, so a
-- clock that jumps makes no source look silent.
create table source_silences (
  source_id text collate "C" primary key references sources (id) on delete cascade,
  last_at timestamptz not null,
  quiet_s float8 not null,
  -- {"<evaluated day>": seconds}
  longest jsonb not null
) with (fillfactor = 80);

-- When retention last ran, by PostgreSQL's clock. If the clock jumped since then, retention drops nothing until the
-- clock has been steady for a while.
create table retention_clock (
  singleton boolean primary key default true check (singleton),
  trusted_at timestamptz not null,
  held_since timestamptz,
  held_reason text
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 12. Billing
-- ---------------------------------------------------------------------------------------------------------------------

-- billing_versions holds what billing systems reported, each version once. Everything else is derived from it and laid
-- out in time: a row is valid from valid_from (inclusive) to valid_to (exclusive). Amounts are whole minor units.
-- Currency '' stands for a subscription that names none.
create table billing_versions (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('subscription', 'invoice', 'payment', 'refund', 'credit_note')),
  object_id text collate "C" not null,
  -- Of the event type and the body: a duplicate adds nothing.
  hash uuid not null,
  source_at timestamptz not null,
  event_id uuid not null,
  event_type text collate "C" not null,
  body json not null,
  -- Reports warn if two sources report one id with two customers.
  source_id text collate "C",
  primary key (tenant_id, kind, object_id, hash)
);
create index billing_versions_by_time on billing_versions (tenant_id, source_at);
create index billing_versions_of_subscriptions on billing_versions (tenant_id, object_id, source_at)
  where kind = 'subscription';

create table billing_subscriptions (
  tenant_id int not null,
  id text collate "C" not null,
  -- False: only invoices name it.
  seen boolean not null,
  -- How far ahead billing_agenda is filled. Null if nothing recurs.
  agenda_until timestamptz,
  -- Where the derivation of a subscription with many versions continues. Null: it starts at the first version.
  checkpoint json,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_subscriptions_unseen on billing_subscriptions (tenant_id, id) where not seen;
create index billing_subscriptions_by_agenda on billing_subscriptions (tenant_id, agenda_until)
  where agenda_until is not null;

-- The states of each subscription over time.
create table billing_segments (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  account text collate "C" not null,
  currency text collate "C" not null,
  status text collate "C" not null,
  started_at timestamptz not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  -- The acquisition that the subscription itself names. 0: none.
  acquisition_id int not null,
  -- Rows of billing_items. A subscription without items has one row.
  item_rows int not null,
  items int not null,
  items_priced int not null,
  items_excluded int not null,
  hash uuid not null,
  body json not null,
  -- What reports warn of: more items than were reported, prices that include tax at an unknown rate.
  cautions text[],
  -- Why the MRR changed at valid_from, and the event behind it.
  cause text collate "C",
  event_id uuid,
  primary key (tenant_id, subscription_id, valid_from)
);
create index billing_segments_by_account on billing_segments (tenant_id, account);
create index billing_segments_by_end on billing_segments (tenant_id, valid_to);
create index billing_segments_unpaid on billing_segments (tenant_id, currency, valid_to) where status = 'unpaid';
create index billing_segments_trials on billing_segments (tenant_id, currency, valid_from) where status = 'trialing';
create index billing_segments_with_cautions on billing_segments (tenant_id, valid_to) where cautions is not null;

-- The items of the segments. A new row starts where the item's share of the MRR changes.
create table billing_items (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  place int not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  currency text collate "C" not null,
  item_id text,
  reason text collate "C",
  excluded_mrr bigint,
  -- When it was first excluded for this reason. Of an item that counts: when the subscription started.
  since timestamptz not null,
  started_at timestamptz not null,
  primary key (tenant_id, subscription_id, place, valid_from)
);
create index billing_items_excluded on billing_items (tenant_id, currency, since desc, subscription_id, place)
  include (valid_from) where reason is not null and valid_to = 'infinity';
create index billing_items_lasting on billing_items (tenant_id, started_at desc, subscription_id, place)
  include (valid_from, currency) where valid_to = 'infinity';
create index billing_items_ending on billing_items (tenant_id, valid_to)
  include (currency, reason, since, started_at, subscription_id, place, valid_from) where valid_to < 'infinity';

create table billing_acquisitions (
  tenant_id int not null,
  id int generated always as identity,
  -- MD5 of source, medium and campaign.
  key uuid not null,
  source text not null,
  medium text,
  campaign text,
  primary key (tenant_id, id)
);
create unique index billing_acquisitions_by_key on billing_acquisitions (tenant_id, key);

-- An account is a customer, else an e-mail address, else a single subscription.
create table billing_accounts (
  tenant_id int not null,
  account text collate "C" not null,
  -- The node of its events, which leads to its profile.
  node bigint,
  own_acquisition_id int not null default 0,
  touch_acquisition_id int not null default 0,
  -- When its MRR first exceeded 0. Unverified events that were received later are not acquisition touches.
  first_paid_at timestamptz,
  acquisition_id int not null
    generated always as (case when own_acquisition_id > 0 then own_acquisition_id else touch_acquisition_id end) stored,
  primary key (tenant_id, account)
) with (fillfactor = 90);
create index billing_accounts_by_node on billing_accounts (tenant_id, node) where node is not null;

-- Accounts of one customer. Reports show the subscriptions and invoices of `account` as those of `into_account`, which is not
-- merged itself.
create table billing_account_merges (
  tenant_id int not null references tenants (id) on delete cascade,
  account text collate "C" not null,
  into_account text collate "C" not null check (into_account <> account),
  merged_at timestamptz not null default now(),
  merged_by text not null,
  primary key (tenant_id, account)
);
create index billing_account_merges_by_target on billing_account_merges (tenant_id, into_account);

-- The totals of an account's subscriptions in one currency. These are also the daily snapshots, written when they change
-- instead of once a day: the snapshot of a day is the row that is valid at its end.
create table billing_account_states (
  tenant_id int not null,
  account text collate "C" not null,
  currency text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  acquisition_id int not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  subscriptions int not null,
  active_subscriptions int not null,
  item_rows int not null,
  items int not null,
  items_priced int not null,
  items_excluded int not null,
  primary key (tenant_id, account, currency, valid_from)
);
-- Totals read only these indexes: the rows that start and the rows that end within a range of time.
create index billing_account_states_by_start on billing_account_states (tenant_id, valid_from) include (
  currency, acquisition_id, mrr, committed_mrr, subscriptions, active_subscriptions, item_rows, items,
  items_priced, items_excluded);
create index billing_account_states_by_end on billing_account_states (tenant_id, valid_to) include (
  currency, acquisition_id, mrr, committed_mrr, subscriptions, active_subscriptions, item_rows, items,
  items_priced, items_excluded, valid_from, account);
create index billing_account_states_by_mrr on billing_account_states (tenant_id, currency, mrr desc, account)
  include (valid_from) where valid_to = 'infinity';

-- Days whose snapshots are complete. All other days are gaps.
create table billing_snapshots (
  tenant_id int primary key,
  days datemultirange not null,
  written_at timestamptz not null
);

create table billing_movements (
  tenant_id int not null,
  currency text collate "C" not null,
  account text collate "C" not null,
  occurred_at timestamptz not null,
  type text collate "C" not null check (type in ('new', 'expansion', 'contraction', 'churn', 'reactivation')),
  mrr_before bigint not null,
  mrr_after bigint not null,
  -- When the account first paid, and how much: its cohort.
  first_at timestamptz not null,
  first_mrr bigint not null,
  -- The account's previous movement; -infinity: there is none.
  previous_at timestamptz not null,
  acquisition_id int not null,
  -- [{subscriptionId, before, after}]
  changes json not null,
  primary key (tenant_id, account, currency, occurred_at)
);
create index billing_movements_by_time on billing_movements (tenant_id, currency, occurred_at, account)
  include (type, mrr_before, mrr_after, previous_at, acquisition_id, first_at, first_mrr);

-- Charges, renewals and cancellations that are expected, up to a horizon that moves along.
create table billing_agenda (
  tenant_id int not null,
  currency text collate "C" not null,
  kind text collate "C" not null check (kind in ('charge', 'renewal', 'cancellation')),
  due_at timestamptz not null,
  subscription_id text collate "C" not null,
  known_from timestamptz not null,
  known_to timestamptz not null,
  -- Whether it was expected depends on the date that a report is as of.
  conditional boolean not null generated always as (known_from > '-infinity' or known_to < due_at) stored,
  body json not null,
  primary key (tenant_id, subscription_id, kind, due_at, known_from)
);
create index billing_agenda_by_time on billing_agenda (tenant_id, kind, due_at, subscription_id)
  include (currency, known_from, known_to, conditional);
create index billing_agenda_conditional on billing_agenda (tenant_id, due_at)
  include (currency, kind, known_from, known_to) where conditional;

create table billing_invoices (
  tenant_id int not null,
  id text collate "C" not null,
  -- Subscription and customer as reported last.
  subscription_id text collate "C",
  customer text collate "C",
  customer_name text,
  customer_email text,
  currency text collate "C" not null,
  first_at timestamptz,
  last_at timestamptz,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_invoices_by_subscription on billing_invoices (tenant_id, subscription_id)
  where subscription_id is not null;
create index billing_invoices_by_customer on billing_invoices (tenant_id, customer, last_at desc) where customer is not null;
create index billing_invoices_without_subscription on billing_invoices (tenant_id, currency, first_at)
  where subscription_id is null;

create table billing_invoice_states (
  tenant_id int not null,
  invoice_id text collate "C" not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  currency text collate "C" not null,
  subscription_id text collate "C",
  customer text collate "C",
  -- Set if it counts as invoiced.
  invoiced_at timestamptz,
  total bigint not null,
  -- From when on the invoice has an issue. Null: it has none while this state is valid.
  issue_from timestamptz,
  hash uuid not null,
  body json not null,
  primary key (tenant_id, invoice_id, valid_from)
);
create index billing_invoice_states_invoiced on billing_invoice_states (tenant_id, invoiced_at)
  include (currency, total, valid_from, valid_to) where invoiced_at is not null;
-- The outstanding amount is read from the open invoices, however many there were.
create index billing_invoice_states_open on billing_invoice_states (tenant_id, currency, valid_to, invoiced_at)
  where invoiced_at is not null and body ->> 'status' = 'open';
create index billing_invoice_issues on billing_invoice_states (tenant_id, currency, valid_to, issue_from, invoice_id)
  where issue_from is not null;
create index billing_invoice_issues_by_subscription on billing_invoice_states (tenant_id, subscription_id, valid_to)
  where issue_from is not null;
create index billing_invoice_issues_by_customer on billing_invoice_states (tenant_id, customer, valid_to)
  where issue_from is not null;

-- Charges, payment intents and invoice payments describe one payment under the same id.
create table billing_payments (
  tenant_id int not null,
  id text collate "C" not null,
  invoice_id text collate "C",
  -- Set while it is unknown whether the payment belongs to an invoice: it may turn out to pay one of this customer's.
  unlinked_customer text collate "C",
  -- Null: only refunds name it.
  body json,
  primary key (tenant_id, id)
) with (fillfactor = 90);
create index billing_payments_by_invoice on billing_payments (tenant_id, invoice_id) where invoice_id is not null;
create index billing_payments_unlinked on billing_payments (tenant_id, unlinked_customer)
  where unlinked_customer is not null;

-- Includes lost disputes and credit notes that were paid out.
create table billing_refunds (
  tenant_id int not null,
  id text collate "C" not null,
  invoice_id text collate "C",
  charge_id text collate "C",
  customer text collate "C",
  currency text collate "C" not null,
  amount bigint not null,
  created_at timestamptz not null,
  -- The money was paid back. False: the refund failed, or is known under another id.
  counted boolean not null,
  body json not null,
  payment_id text collate "C",
  primary key (tenant_id, id)
);
create index billing_refunds_by_invoice on billing_refunds (tenant_id, invoice_id) where invoice_id is not null;
create index billing_refunds_by_payment on billing_refunds (tenant_id, payment_id) where payment_id is not null;
create index billing_refunds_by_customer on billing_refunds (tenant_id, customer) where customer is not null;

-- Money received and paid back, for an invoice or for a payment without one.
create table billing_cash (
  tenant_id int not null,
  owner text collate "C" not null,
  kind text collate "C" not null check (kind in ('payment', 'refund', 'dispute')),
  id text collate "C" not null,
  occurred_at timestamptz not null,
  -- From when on it no longer counts: a refund that failed.
  valid_to timestamptz not null,
  currency text collate "C" not null,
  amount bigint not null,
  -- For an invoice of a subscription. Everything else is one-off.
  recurring boolean not null,
  primary key (tenant_id, owner, kind, id)
);
create index billing_cash_by_time on billing_cash (tenant_id, currency, occurred_at)
  include (kind, amount, recurring, valid_to);

create table billing_credit_notes (
  tenant_id int not null,
  id text collate "C" not null,
  invoice_id text collate "C" not null,
  body json not null,
  primary key (tenant_id, id)
);
create index billing_credit_notes_by_invoice on billing_credit_notes (tenant_id, invoice_id);

-- Amounts of invoices and credit notes without tax, and the days over which they are recognized as revenue.
create table billing_revenue (
  tenant_id int not null,
  invoice_id text collate "C" not null,
  place int not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  currency text collate "C" not null,
  credit_note_id text collate "C",
  -- Days in this time zone. After a change of the policy a job derives them again.
  zone text collate "C" not null,
  invoiced_on date not null,
  starts_on date not null,
  ends_on date not null,
  amount bigint not null,
  primary key (tenant_id, invoice_id, place, valid_from)
);
create index billing_revenue_by_end on billing_revenue (tenant_id, currency, ends_on)
  include (starts_on, invoiced_on, amount, valid_from, valid_to);
create index billing_revenue_by_invoice_day on billing_revenue (tenant_id, currency, invoiced_on)
  include (starts_on, ends_on, amount, valid_from, valid_to);

-- Sums of current revenue by month, like the sums by day below.
create table billing_revenue_months (
  tenant_id int not null,
  zone text collate "C" not null,
  month date not null,
  currency text collate "C" not null,
  invoiced bigint not null,
  recognized bigint not null,
  lines bigint not null,
  compacted boolean not null default false
);
create index billing_revenue_months_by_key on billing_revenue_months (tenant_id, zone, month, currency);
create index billing_revenue_months_added on billing_revenue_months (tenant_id, zone, month, currency)
  where not compacted;

-- Sums by UTC day, so that the cost of a report does not depend on the number of accounts. A sum is the total of all its
-- rows: each transaction adds its own row, and a job compacts many rows into one.
create table billing_account_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  acquisition_id int not null,
  -- The changes of the day, positive or negative.
  accounts bigint not null,
  active_accounts bigint not null,
  subscriptions bigint not null,
  active_subscriptions bigint not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  item_rows bigint not null,
  items bigint not null,
  items_priced bigint not null,
  items_excluded bigint not null,
  -- False: added by one transaction.
  compacted boolean not null default false
);
create index billing_account_days_by_key on billing_account_days (tenant_id, day, currency, acquisition_id);
create index billing_account_days_added on billing_account_days (tenant_id, day, currency, acquisition_id)
  where not compacted;

create table billing_account_months (
  tenant_id int not null,
  month date not null,
  currency text collate "C" not null,
  acquisition_id int not null,
  accounts bigint not null,
  active_accounts bigint not null,
  subscriptions bigint not null,
  active_subscriptions bigint not null,
  mrr bigint not null,
  committed_mrr bigint not null,
  item_rows bigint not null,
  items bigint not null,
  items_priced bigint not null,
  items_excluded bigint not null,
  compacted boolean not null default false
);
create index billing_account_months_by_key on billing_account_months (tenant_id, month, currency, acquisition_id);
create index billing_account_months_added on billing_account_months (tenant_id, month, currency, acquisition_id)
  where not compacted;

create table billing_cash_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  invoiced bigint not null default 0,
  invoices bigint not null default 0,
  collected bigint not null default 0,
  payments bigint not null default 0,
  compacted boolean not null default false,
  refunded bigint not null default 0,
  disputed bigint not null default 0,
  one_off bigint not null default 0
);
create index billing_cash_days_by_key on billing_cash_days (tenant_id, day, currency);
create index billing_cash_days_added on billing_cash_days (tenant_id, day, currency) where not compacted;

create table billing_agenda_days (
  tenant_id int not null,
  day date not null,
  currency text collate "C" not null,
  kind text collate "C" not null,
  entries bigint not null,
  compacted boolean not null default false
);
create index billing_agenda_days_by_key on billing_agenda_days (tenant_id, day, currency, kind);
create index billing_agenda_days_added on billing_agenda_days (tenant_id, day, currency, kind) where not compacted;

-- Coupons, promotion codes, discounts, customers and taxes of prices. Subscriptions refer to them by id.
create table billing_terms (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('customer', 'discount', 'promotion_code', 'coupon', 'tax')),
  id text collate "C" not null,
  coupon_id text collate "C",
  promotion_code_id text collate "C",
  customer text collate "C",
  subscription_id text collate "C",
  -- A discount of the customer. It applies to each of its subscriptions that has no discount of its own.
  of_customer boolean not null,
  -- Every version received, oldest first.
  versions json not null,
  primary key (tenant_id, kind, id)
);
create index billing_terms_by_coupon on billing_terms (tenant_id, coupon_id) where coupon_id is not null;
create index billing_terms_by_promotion_code on billing_terms (tenant_id, promotion_code_id)
  where promotion_code_id is not null;
create index billing_terms_of_customers on billing_terms (tenant_id, customer) where of_customer;

-- Subscriptions to derive again, in portions: one coupon may affect many.
create table billing_outdated (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  -- The first event that made it outdated.
  event_id text collate "C",
  received_at timestamptz not null,
  primary key (tenant_id, subscription_id)
);

-- How a tenant counts its MRR. One row per change; none before the first change.
create table tenant_policies (
  tenant_id int not null references tenants (id) on delete cascade,
  version int not null check (version > 1),
  policy json not null,
  set_at timestamptz not null default now(),
  set_by text not null,
  -- From then on all reports follow it. Null: the ledger is not restated yet, or another version came first.
  applied_at timestamptz,
  -- MRR by currency at applied_at, under the previous policy and under this one. Null: both give the same ledger.
  mrr json,
  -- The last subscription id that the search for affected subscriptions has examined.
  scanned_until text collate "C" not null default '',
  primary key (tenant_id, version)
);

-- Subscriptions whose ledger may change under the next policy.
create table billing_restated (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  primary key (tenant_id, subscription_id)
);

-- Closed months. Reports can return what was known when a month was closed.
create table billing_closings (
  tenant_id int not null references tenants (id) on delete cascade,
  month date not null,
  -- The order of closings. A month that is reopened and closed again gets a new number.
  number bigint not null generated always as identity,
  starts timestamptz not null,
  ends timestamptz not null,
  policy_version int not null,
  policy json not null,
  closed_at timestamptz not null default now(),
  closed_by text not null,
  primary key (tenant_id, month)
);

-- Accounts as they were before a change within a closed month: valid for closings up to this one, from the account's previous row on.
create table billing_closed_accounts (
  tenant_id int not null,
  account text collate "C" not null,
  closing bigint not null,
  acquisition_id int not null,
  segments json not null,
  primary key (tenant_id, account, closing)
);

-- Exchange rates of days up to the end of a closed month as they were before a later import, valid for the same closings.
-- Null: the day had no rate, and reports used an earlier one.
create table billing_closed_rates (
  tenant_id int not null,
  currency text collate "C" not null,
  day date not null,
  closing bigint not null,
  rate numeric,
  primary key (tenant_id, currency, day, closing)
);

-- Changes of closed months: by how much the MRR of an account at the end of the month changed, and the event that caused it.
create table billing_restatements (
  tenant_id int not null,
  number bigint not null generated always as identity,
  closing bigint not null,
  account text collate "C" not null,
  currency text collate "C" not null,
  amount bigint not null,
  event_id text collate "C",
  received_at timestamptz not null,
  primary key (tenant_id, number)
);
create index billing_restatements_by_closing on billing_restatements (tenant_id, closing, number);

-- Namespaces of the tenant's ids. Ids without a namespace are not listed.
create table billing_namespaces (
  tenant_id int not null,
  namespace text collate "C" not null,
  primary key (tenant_id, namespace)
);

-- Events that are in no total, by type and UTC day: not recognized, or of a provider's test mode.
create table billing_uncounted (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('unrecognized', 'test')),
  event_type text collate "C" not null,
  day date not null,
  events bigint not null,
  primary key (tenant_id, kind, event_type, day)
);

-- Values of billing objects that cannot be read. A newer version of the object resolves them.
create table billing_warnings (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('subscription', 'invoice', 'refund')),
  object_id text collate "C" not null,
  source_at timestamptz not null,
  field text collate "C" not null,
  value text not null,
  event_id uuid not null,
  source_id text collate "C",
  received_at timestamptz not null,
  primary key (tenant_id, kind, object_id, source_at, field)
);

-- Daily rates that a tenant supplies, as units of the currency for one euro.
create table exchange_rates (
  tenant_id int not null,
  currency text collate "C" not null,
  day date not null,
  rate numeric not null check (rate > 0),
  primary key (tenant_id, currency, day)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- 13. Customers
-- ---------------------------------------------------------------------------------------------------------------------

-- People with a purchase, a subscription or a contact, in one row each, so that lists of a million people are sorted by an
-- index. A job computes the rows again from the tables above (src/jobs/customers.ts), for the people in customer_changes
-- and those whose refresh_at has passed.
create table customers (
  tenant_id int not null,
  profile bigint not null,
  contact_id text,
  name text,
  email text,
  company text,
  country text,
  -- The name, e-mail address or company in lower case.
  sort_name text collate "C" not null,
  -- By the rules of the tenant. Null: nothing says where the person came from.
  channel text collate "C",
  -- When the person came: the time of the touch that decides the channel, else first_seen_at.
  acquired_at timestamptz not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  status text collate "C" not null,
  -- The first purchase or payment. Null: none.
  customer_since timestamptz,
  trialed boolean not null,
  orders int not null,
  -- The billing account with the largest MRR, and the plans of all.
  account text,
  plans text[] not null,
  -- When the row changes without any input: a subscription starts, ends or is overdue.
  refresh_at timestamptz,
  -- Words to search for. Each starts with the tenant, so that the index never reads words of other tenants.
  words tsvector not null,
  primary key (tenant_id, profile)
);
create index customers_by_last_seen on customers (tenant_id, last_seen_at, profile);
create index customers_by_first_seen on customers (tenant_id, first_seen_at, profile);
create index customers_by_name on customers (tenant_id, sort_name, profile);
create index customers_by_arrival on customers (tenant_id, acquired_at);
create index customers_by_words on customers using gin (words);
create index customers_to_refresh on customers (refresh_at) where refresh_at is not null;

create table customer_amounts (
  tenant_id int not null,
  profile bigint not null,
  currency text collate "C" not null,
  revenue numeric not null,
  -- In minor units.
  mrr bigint not null,
  primary key (tenant_id, profile, currency),
  foreign key (tenant_id, profile) references customers on delete cascade
);
create index customer_amounts_by_revenue on customer_amounts (tenant_id, currency, revenue, profile);
create index customer_amounts_by_mrr on customer_amounts (tenant_id, currency, mrr, profile);

-- People whose row in customers is outdated: one column of each row is set. A profile id is the id of a node, so `node` means
-- that profile, and the profile of that node. Contacts and accounts are noted by their ids, because their profile may be in a
-- transaction that is not committed yet; the job finds it. Without a key, so that writers never wait for each other or for the
-- job.
create table customer_changes (
  tenant_id int not null,
  node bigint,
  -- A node with a new touch, which concerns only customers: most touches are those of new visitors.
  touched bigint,
  contact text,
  account text
);

-- Triggers, because about thirty statements write these tables (src/store/README.md). changed_rows: the rows as written or
-- as deleted; after an update one trigger has the new rows, and one the old rows if they may concern another person.
create function customer_nodes_changed() returns trigger language plpgsql as $$
begin
  insert into customer_changes (tenant_id, node) select distinct tenant_id, node from changed_rows where node is not null;
  return null;
end $$;
create trigger customer_sales_inserted after insert on conversions referencing new table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_sales_updated after update on conversions referencing new table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_sales_replaced after update on conversions referencing old table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_sales_deleted after delete on conversions referencing old table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_accounts_inserted after insert on billing_accounts referencing new table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_accounts_updated after update on billing_accounts referencing new table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_accounts_replaced after update on billing_accounts referencing old table as changed_rows
  for each statement execute function customer_nodes_changed();
create trigger customer_accounts_deleted after delete on billing_accounts referencing old table as changed_rows
  for each statement execute function customer_nodes_changed();

create function customer_subscriptions_changed() returns trigger language plpgsql as $$
begin
  insert into customer_changes (tenant_id, account) select distinct tenant_id, account from changed_rows;
  return null;
end $$;
create trigger customer_subscriptions_inserted after insert on billing_segments referencing new table as changed_rows
  for each statement execute function customer_subscriptions_changed();
create trigger customer_subscriptions_updated after update on billing_segments referencing new table as changed_rows
  for each statement execute function customer_subscriptions_changed();
create trigger customer_subscriptions_replaced after update on billing_segments referencing old table as changed_rows
  for each statement execute function customer_subscriptions_changed();
create trigger customer_subscriptions_deleted after delete on billing_segments referencing old table as changed_rows
  for each statement execute function customer_subscriptions_changed();

create function customer_invoices_changed() returns trigger language plpgsql as $$
begin
  insert into customer_changes (tenant_id, account) select distinct tenant_id, customer from changed_rows where customer is not null;
  return null;
end $$;
create trigger customer_invoices_inserted after insert on billing_invoice_states referencing new table as changed_rows
  for each statement execute function customer_invoices_changed();
create trigger customer_invoices_updated after update on billing_invoice_states referencing new table as changed_rows
  for each statement execute function customer_invoices_changed();
create trigger customer_invoices_deleted after delete on billing_invoice_states referencing old table as changed_rows
  for each statement execute function customer_invoices_changed();

create function customer_contacts_changed() returns trigger language plpgsql as $$
begin
  insert into customer_changes (tenant_id, contact) select tenant_id, id from changed_rows where entity_type = 'contact';
  return null;
end $$;
create trigger customer_contacts_inserted after insert on records referencing new table as changed_rows
  for each statement execute function customer_contacts_changed();
create trigger customer_contacts_updated after update on records referencing new table as changed_rows
  for each statement execute function customer_contacts_changed();
create trigger customer_contacts_deleted after delete on records referencing old table as changed_rows
  for each statement execute function customer_contacts_changed();

-- A new visitor with a profile of their own is no customer yet.
create function customer_identities_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into customer_changes (tenant_id, node)
    select distinct tenant_id, profile from new_rows where profile <> node or kind = 'contact';
  elsif tg_op = 'UPDATE' then
    insert into customer_changes (tenant_id, node)
    select distinct n.tenant_id, p.profile from new_rows n
    join old_rows o on o.tenant_id = n.tenant_id and o.node = n.node
    cross join lateral (values (n.profile), (o.profile)) as p (profile)
    where (n.profile, n.retired_at, n.last_seen_at, n.verified)
      is distinct from (o.profile, o.retired_at, o.last_seen_at, o.verified);
  else
    -- At once, because an erasure deletes identifiers. The job restores the row if the person has other data.
    delete from customers c using (select distinct tenant_id, profile from old_rows) o
      where c.tenant_id = o.tenant_id and c.profile = o.profile;
    insert into customer_changes (tenant_id, node) select distinct tenant_id, profile from old_rows;
  end if;
  return null;
end $$;
create trigger customer_identities_inserted after insert on identities referencing new table as new_rows
  for each statement execute function customer_identities_changed();
create trigger customer_identities_updated after update on identities
  referencing old table as old_rows new table as new_rows for each statement execute function customer_identities_changed();
create trigger customer_identities_deleted after delete on identities referencing old table as old_rows
  for each statement execute function customer_identities_changed();

create function customer_touches_changed() returns trigger language plpgsql as $$
begin
  insert into customer_changes (tenant_id, touched) select distinct tenant_id, node from changed_rows;
  return null;
end $$;
create trigger customer_touches_inserted after insert on touches referencing new table as changed_rows
  for each statement execute function customer_touches_changed();
create trigger customer_touches_updated after update on touches referencing new table as changed_rows
  for each statement execute function customer_touches_changed();
create trigger customer_touches_deleted after delete on touches referencing old table as changed_rows
  for each statement execute function customer_touches_changed();

-- ---------------------------------------------------------------------------------------------------------------------
-- 14. Views for BI tools
-- ---------------------------------------------------------------------------------------------------------------------

-- The views are public (docs/guides/bi.md): columns may be added, but never renamed or removed.
create schema kontor_bi;
grant usage on schema kontor_bi to public;

-- The tenant of the role that signed in (session_user), not of a role it switched to. Only this function runs with the
-- owner's rights.
create function kontor_bi.tenant() returns int language sql stable security definer set search_path = pg_catalog as
$$ select a.tenant_id from public.sql_access a where a.role = session_user $$;

-- Minor units to an amount: 1990 EUR cents are 19.90.
create function kontor_bi.amount(minor bigint, currency text) returns numeric language sql immutable parallel safe as
$$ select case
  when currency in ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF')
    then minor::numeric
  when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then (minor * 0.001)::numeric
  when currency in ('CLF', 'UYW') then (minor * 0.0001)::numeric
  else (minor * 0.01)::numeric end $$;

-- An id as its source writes it, without the namespace that distinguishes two shops.
create function kontor_bi.own_id(id text) returns text language sql immutable parallel safe as
$$ select regexp_replace(id, '^[A-Za-z0-9_.-]+' || chr(31), '') $$;

create function kontor_bi.instant(epoch_ms text) returns timestamptz language sql immutable parallel safe as
$$ select to_timestamp(epoch_ms::float8 / 1000) $$;

create view kontor_bi.products with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, r.sku, r.data ->> 'name' as name, r.data, r.source_updated_at,
  r.created_at, r.updated_at
from public.records r
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'product' and not r.deleted;

create view kontor_bi.contacts with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, lower(r.data ->> 'email') as email, r.data ->> 'name' as name,
  r.data ->> 'company' as company, r.data ->> 'country' as country, r.data, r.source_updated_at, r.created_at, r.updated_at
from public.records r
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'contact' and not r.deleted;

create view kontor_bi.orders with (security_barrier) as
select 'ten_' || r.tenant_id as tenant, r.id, r.external_id, c.order_placed_at as placed_at, c.order_amount as amount,
  c.order_currency as currency, coalesce(r.data ->> 'status', r.data ->> 'state') as status, c.order_contact_id as contact_id,
  r.data, r.source_updated_at, r.created_at, r.updated_at
from public.records r
left join public.conversions c on c.tenant_id = r.tenant_id and c.sale_key = 'order:' || r.id
where r.tenant_id = (select kontor_bi.tenant()) and r.entity_type = 'order' and not r.deleted;

-- The rows of GET /v1/events, without test events.
create view kontor_bi.events with (security_barrier) as
select 'ten_' || e.tenant_id as tenant, e.id, e.occurred_at, e.received_at, e.event_type, e.source, e.source_config_id, e.visitor,
  e.session_id, 'prof_' || i.profile as profile_id, e.payload::jsonb as payload,
  public.event_meta(e.kind, e.ip, e.batch_index, e.batch_size, e.meta)::jsonb as meta
from public.events e
left join public.identities i on i.tenant_id = e.tenant_id and i.node = e.node
where e.tenant_id = (select kontor_bi.tenant()) and not e.conversion and coalesce(e.meta, '') not like '{"test":true%';

-- The rows of GET /v1/conversions.
create view kontor_bi.conversions with (security_barrier) as
select 'ten_' || c.tenant_id as tenant, c.id, c.occurred_at, c.conversion_type, c.event_type, c.source,
  c.object_id as source_object_id, coalesce(c.order_amount, c.event_amount) as amount,
  case when c.order_amount is not null then c.order_currency else coalesce(c.event_currency, c.order_currency) end as currency,
  c.visitor, 'prof_' || i.profile as profile_id, c.order_contact_id as contact_id,
  c.event_source_config_id as integration_id, c.verified, c.claims
from public.conversions c
left join public.identities i on i.tenant_id = c.tenant_id and i.node = c.node
where c.tenant_id = (select kontor_bi.tenant()) and c.listed;

-- The current state of each subscription.
create view kontor_bi.subscriptions with (security_barrier) as
select 'ten_' || s.tenant_id as tenant, kontor_bi.own_id(s.subscription_id) as id, kontor_bi.own_id(s.account) as customer,
  s.body ->> 'customerName' as customer_name, s.body ->> 'customerEmail' as customer_email, s.status, s.currency,
  kontor_bi.amount(s.mrr, s.currency) as mrr, kontor_bi.amount(s.committed_mrr, s.currency) as committed_mrr, s.started_at,
  s.valid_from as since, a.source as acquisition_source, a.medium as acquisition_medium, a.campaign as acquisition_campaign
from public.billing_segments s
left join public.billing_accounts b on b.tenant_id = s.tenant_id and b.account = s.account
left join public.billing_acquisitions a on a.tenant_id = b.tenant_id and a.id = b.acquisition_id
where s.tenant_id = (select kontor_bi.tenant()) and s.valid_from <= now() and s.valid_to > now();

-- The current state of each invoice. Its customer is the account of the reports, also of merged accounts.
create view kontor_bi.invoices with (security_barrier) as
select 'ten_' || i.tenant_id as tenant, kontor_bi.own_id(i.id) as id, s.body ->> 'number' as number,
  kontor_bi.own_id(i.subscription_id) as subscription_id, kontor_bi.own_id(coalesce(m.into_account, i.customer)) as customer, i.customer_name, i.customer_email,
  s.body ->> 'status' as status, s.currency, kontor_bi.amount(s.total, s.currency) as total,
  kontor_bi.amount((s.body ->> 'amountPaid')::bigint, s.currency) as amount_paid,
  kontor_bi.amount((s.body ->> 'amountRemaining')::bigint, s.currency) as amount_remaining, s.invoiced_at,
  kontor_bi.instant(s.body ->> 'dueAt') as due_at, kontor_bi.instant(s.body ->> 'paidAt') as paid_at
from public.billing_invoices i
join public.billing_invoice_states s on s.tenant_id = i.tenant_id and s.invoice_id = i.id and s.valid_from <= now() and s.valid_to > now()
left join public.billing_account_merges m on m.tenant_id = i.tenant_id and m.account = i.customer
where i.tenant_id = (select kontor_bi.tenant());

-- Without movements in the future (a discount that will end): the sum of all movements is today's MRR.
create view kontor_bi.movements with (security_barrier) as
select 'ten_' || m.tenant_id as tenant, m.occurred_at, m.type, kontor_bi.own_id(m.account) as customer, m.currency,
  kontor_bi.amount(m.mrr_after - m.mrr_before, m.currency) as amount, kontor_bi.amount(m.mrr_before, m.currency) as mrr_before,
  kontor_bi.amount(m.mrr_after, m.currency) as mrr_after
from public.billing_movements m
where m.tenant_id = (select kontor_bi.tenant()) and m.occurred_at <= now();

-- The MRR at the end of each UTC day, in every currency, from the first day with any MRR until today.
create view kontor_bi.mrr_by_day with (security_barrier) as
with changes as (
  select tenant_id, currency, day, sum(mrr) as mrr, sum(active_accounts) as accounts, sum(active_subscriptions) as subscriptions
  from public.billing_account_days where tenant_id = (select kontor_bi.tenant()) group by 1, 2, 3
), days as (
  select tenant_id, currency, d::date as day
  from (select tenant_id, currency, min(day) as first from changes group by 1, 2) f
  cross join lateral generate_series(f.first::timestamp, (now() at time zone 'UTC')::date::timestamp, interval '1 day') as d
)
select 'ten_' || d.tenant_id as tenant, d.day, d.currency,
  kontor_bi.amount((sum(c.mrr) over upto)::bigint, d.currency) as mrr,
  coalesce(sum(c.accounts) over upto, 0)::bigint as active_accounts,
  coalesce(sum(c.subscriptions) over upto, 0)::bigint as active_subscriptions
from days d left join changes c on c.tenant_id = d.tenant_id and c.currency = d.currency and c.day = d.day
window upto as (partition by d.tenant_id, d.currency order by d.day);

-- Amounts invoiced and collected on each UTC day.
create view kontor_bi.cash_by_day with (security_barrier) as
select 'ten_' || d.tenant_id as tenant, d.day, d.currency, kontor_bi.amount(sum(d.invoiced)::bigint, d.currency) as invoiced,
  kontor_bi.amount(sum(d.collected)::bigint, d.currency) as collected, kontor_bi.amount(sum(d.refunded)::bigint, d.currency) as refunded,
  kontor_bi.amount(sum(d.disputed)::bigint, d.currency) as disputed, kontor_bi.amount(sum(d.one_off)::bigint, d.currency) as one_off
from public.billing_cash_days d where d.tenant_id = (select kontor_bi.tenant()) group by d.tenant_id, d.day, d.currency;

-- A number that JSON contains as a number or as text; null for anything else.
create function kontor_bi.number(value text) returns numeric language sql immutable parallel safe as
$$ select case when value ~ '^-?[0-9]{1,18}(\.[0-9]{1,18})?$' then value::numeric end $$;

-- The value of a query parameter of a URL. Text that is not valid after decoding stays as it is.
create function kontor_bi.query_value(url text, name text) returns text language plpgsql immutable as $$
declare
  value text := nullif(replace(substring(split_part(url, '#', 1) from '[?&]' || name || '=([^&]*)'), '+', ' '), '');
begin
  if value is null or strpos(value, '%') = 0 then return value; end if;
  return (
    select convert_from(string_agg(case when part[1] ~ '^%..' then decode(substr(part[1], 2), 'hex') else convert_to(part[1], 'UTF8') end, ''::bytea order by n), 'UTF8')
    from regexp_matches(value, '(%[0-9A-Fa-f]{2}|[^%]+|%)', 'g') with ordinality as parts (part, n));
exception when others then
  return value;
end $$;

create function kontor_bi.host(url text) returns text language sql immutable parallel safe as
$$ select lower(substring(url from '(?i)^https?://(?:[^/?#@]*@)?(?:www\.)?([^/?#:@\s]{1,255})')) $$;

-- Where a visitor came from, one row per event that says so, with the rules of the reports: UTM parameters of the event or its page,
-- else the campaign of an SDK, else the host of an external referrer, else direct. An event of a public key that states a time more
-- than a day before its receipt says nothing.
create view kontor_bi.touches with (security_barrier) as
select 'ten_' || e.tenant_id as tenant, e.id as event_id, e.occurred_at, e.visitor, 'prof_' || i.profile as profile_id,
  coalesce(utm.source, campaign.source, kontor_bi.host(referral.referrer), 'direct') as source,
  case when utm.source is not null then utm.medium when campaign.source is not null then campaign.medium
    when referral.referrer is not null then 'referral' end as medium,
  case when utm.source is not null then utm.campaign when campaign.source is not null then campaign.name end as campaign
from public.events e
left join public.identities i on i.tenant_id = e.tenant_id and i.node = e.node
left join public.api_keys k on k.number = e.key
cross join lateral (select e.payload::jsonb as body) p
cross join lateral (
  select case when jsonb_typeof(p.body -> 'data') = 'object' then p.body -> 'data' when jsonb_typeof(p.body -> 'properties') = 'object'
    then p.body -> 'properties' else p.body end as subject
) s
cross join lateral (
  select coalesce(s.subject ->> 'page', s.subject ->> 'url', p.body -> 'context' -> 'page' ->> 'url') as url,
    coalesce(s.subject ->> 'referrer', p.body -> 'context' -> 'page' ->> 'referrer') as referrer
) page
cross join lateral (
  select case when strpos(page.url, 'utm_source=') > 0 then page.url
    when strpos(p.body -> 'context' -> 'page' ->> 'search', 'utm_source=') > 0 then p.body -> 'context' -> 'page' ->> 'search' end as url
) tagged
cross join lateral (
  select nullif(trim(coalesce(s.subject ->> 'utm_source', kontor_bi.query_value(tagged.url, 'utm_source'))), '') as source,
    coalesce(s.subject ->> 'utm_medium', kontor_bi.query_value(tagged.url, 'utm_medium')) as medium,
    coalesce(s.subject ->> 'utm_campaign', kontor_bi.query_value(tagged.url, 'utm_campaign')) as campaign
) utm
cross join lateral (
  select nullif(trim(p.body -> 'context' -> 'campaign' ->> 'source'), '') as source, p.body -> 'context' -> 'campaign' ->> 'medium' as medium,
    p.body -> 'context' -> 'campaign' ->> 'name' as name
) campaign
cross join lateral (
  select case when kontor_bi.host(page.referrer) is distinct from kontor_bi.host(page.url) and kontor_bi.host(page.referrer) is not null
    then page.referrer end as referrer
) referral
where e.tenant_id = (select kontor_bi.tenant()) and coalesce(e.meta, '') not like '{"test":true%'
  and (coalesce(utm.source, campaign.source, referral.referrer) is not null or e.event_type in ('page_view', 'pageview', 'page', 'screen'))
  and (e.source_config_id is not null or k.server or e.received_at - e.occurred_at <= interval '1 day');

-- Each row of conversions once, with the first and the last touch of the buyer up to the sale. A touch with a source precedes a direct one.
create view kontor_bi.conversion_touches with (security_barrier) as
select c.tenant, c.id, c.occurred_at, c.conversion_type, c.source_object_id, c.amount, c.currency, c.profile_id,
  t.first[1] as first_source, t.first[2] as first_medium, t.first[3] as first_campaign, t.first_at as first_touch_at,
  t.last[1] as last_source, t.last[2] as last_medium, t.last[3] as last_campaign, t.last_at as last_touch_at
from kontor_bi.conversions c
left join (
  select c.id,
    (array_agg(array[t.source, t.medium, t.campaign] order by t.source = 'direct', t.occurred_at, t.event_id))[1:1] as firsts,
    (array_agg(array[t.source, t.medium, t.campaign] order by t.source = 'direct', t.occurred_at desc, t.event_id desc))[1:1] as lasts,
    (array_agg(t.occurred_at order by t.source = 'direct', t.occurred_at, t.event_id))[1] as first_at,
    (array_agg(t.occurred_at order by t.source = 'direct', t.occurred_at desc, t.event_id desc))[1] as last_at
  from kontor_bi.conversions c join kontor_bi.touches t on t.profile_id = c.profile_id and t.occurred_at <= c.occurred_at
  group by c.id
) a on a.id = c.id
left join lateral (
  select array[a.firsts[1][1], a.firsts[1][2], a.firsts[1][3]] as first, array[a.lasts[1][1], a.lasts[1][2], a.lasts[1][3]] as last, a.first_at, a.last_at
) t on true;

-- The lines of each sale in one shape: of the order record, or else of the event that reported the sale.
create view kontor_bi.order_lines with (security_barrier) as
select sale.tenant, sale.order_id, line.n::int as line, sale.placed_at, sale.currency,
  coalesce(item.body ->> 'sku', item.body ->> 'SKU') as sku,
  coalesce(item.body ->> 'product_id', item.body ->> 'productId', item.body -> 'product' ->> 'id') as product_id,
  coalesce(item.body ->> 'variant_id', item.body ->> 'variantId') as variant_id,
  coalesce(item.body ->> 'name', item.body ->> 'title', item.body ->> 'product_name') as name,
  number.quantity, coalesce(number.price, number.total / nullif(number.quantity, 0)) as unit_price,
  coalesce(number.total, number.price * number.quantity) as amount
from (
  select o.tenant, o.id as order_id, o.placed_at, o.currency, o.data as body from kontor_bi.orders o
  union all
  select 'ten_' || c.tenant_id, c.object_id, c.occurred_at, c.event_currency,
    case when jsonb_typeof(e.payload::jsonb -> 'properties') = 'object' then e.payload::jsonb -> 'properties'
      when jsonb_typeof(e.payload::jsonb -> 'data') = 'object' then e.payload::jsonb -> 'data' else e.payload::jsonb end
  from public.conversions c
  join public.events e on e.tenant_id = c.tenant_id and e.id = c.event_id and e.occurred_at = c.event_occurred_at
    and substring(uuid_send(e.id) from 1 for 6) = substring(uuid_send(c.event_id) from 1 for 6)
  where c.tenant_id = (select kontor_bi.tenant()) and c.order_state is null
) sale
cross join lateral (
  select coalesce(sale.body -> 'line_items', sale.body -> 'lineItems', sale.body -> 'items', sale.body -> 'lines', sale.body -> 'products') as list
) lines
cross join lateral jsonb_array_elements(case jsonb_typeof(lines.list) when 'array' then lines.list else '[]' end) with ordinality as line (body, n)
cross join lateral (select case jsonb_typeof(line.body) when 'object' then line.body else '{}' end as body) item
cross join lateral (
  select coalesce(kontor_bi.number(coalesce(item.body ->> 'quantity', item.body ->> 'qty')), 1) as quantity,
    kontor_bi.number(coalesce(item.body ->> 'price', item.body ->> 'unit_price', item.body ->> 'unitPrice')) as price,
    kontor_bi.number(coalesce(item.body ->> 'total', item.body ->> 'amount', item.body ->> 'line_total')) as total
) number;

grant select on all tables in schema kontor_bi to public;
