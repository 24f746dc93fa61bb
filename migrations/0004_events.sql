-- Everything that is known of a person under one name: a visitor id, a user id, an e-mail, a contact id.
-- Names seen together share a profile. Events keep the node they were seen with and read the profile through
-- it, so a merge rewrites the smaller side's nodes and no event.
create sequence identity_nodes;
create table identities (
  tenant_id int not null,
  node bigint not null,
  kind text collate "C" not null check (kind in ('visitor', 'user', 'email', 'contact')),
  value text collate "C" not null,
  profile bigint not null,
  first_seen_at timestamptz not null default now(),
  primary key (tenant_id, kind, value)
) with (fillfactor = 90);
create unique index identities_by_node on identities (tenant_id, node) include (profile);
create index identities_by_profile on identities (tenant_id, profile);

-- The first touch seen under a node: where the person came from. One that names a sender comes before a direct one.
create table touches (
  tenant_id int not null,
  node bigint not null,
  direct boolean not null,
  occurred_at timestamptz not null,
  event_id uuid not null,
  source text not null,
  medium text,
  campaign text,
  primary key (tenant_id, node)
) with (fillfactor = 90);

create table events (
  tenant_id int not null,
  id uuid not null,
  occurred_at timestamptz not null,
  received_at timestamptz not null,
  event_type text collate "C" not null,
  conversion boolean not null,
  source text collate "C" not null,
  source_type text collate "C" not null,
  source_config_id text collate "C",
  inbound_event_id text,
  provider_event_id text,
  visitor text,
  session_id text,
  node bigint,
  -- JSON as it was received, made storable. Text, not jsonb: it is written often, read as a whole, and checked
  -- before; taking it apart cost a third of an event's time in PostgreSQL. Ask with payload::jsonb.
  payload text not null,
  headers text,
  meta text
) partition by range (occurred_at);
create index events_by_time on events (tenant_id, occurred_at, id) where not conversion;
create index events_by_type on events (tenant_id, event_type, occurred_at, id) where not conversion;
create index events_by_receipt on events using brin (received_at) with (pages_per_range = 32, autosummarize = on);
create table events_before_2000 partition of events for values from (minvalue) to ('2000-01-01');

-- The processed-event store. key: hash of the source and the sender's event id; a period is a month.
create table processed_events (
  period int not null,
  tenant_id int not null,
  key uuid not null,
  event_id uuid not null,
  primary key (tenant_id, key, period)
) partition by range (period);

-- One sale is one row. What an order record says and what events say is kept apart, so that the row is the
-- same whatever came first; the columns that are read are derived from both.
create table conversions (
  tenant_id int not null,
  -- 'order:<order id>', or 'event:<event id>' where no order is named
  sale_key text collate "C" not null,
  id uuid not null,
  order_state text check (order_state in ('live', 'deleted')),
  order_placed_at timestamptz,
  order_updated_at timestamptz,
  order_amount numeric,
  order_currency text,
  order_contact_id text collate "C",
  order_node bigint,
  event_id uuid,
  event_occurred_at timestamptz,
  event_type text collate "C",
  event_conversion_type text collate "C",
  event_source text,
  event_source_config_id text,
  -- the order, invoice or object that was bought
  object_id text,
  event_amount numeric,
  event_currency text,
  event_visitor text,
  event_node bigint,
  occurred_at timestamptz not null
    generated always as (coalesce(order_placed_at, event_occurred_at, order_updated_at)) stored,
  conversion_type text collate "C" not null
    generated always as (case when order_state = 'live' then 'order' else coalesce(event_conversion_type, 'order') end) stored,
  source text not null
    generated always as (case when order_state = 'live' then 'orders' else coalesce(event_source, 'orders') end) stored,
  listed boolean not null generated always as (order_state is distinct from 'deleted') stored,
  primary key (tenant_id, sale_key)
) with (fillfactor = 90);
create unique index conversions_by_id on conversions (tenant_id, id);
create index conversions_by_time on conversions (tenant_id, occurred_at, id) where listed;
create index conversions_by_type on conversions (tenant_id, conversion_type, occurred_at, id) where listed;
-- rows that conversions_by_type does not find under their event type
create index conversions_by_event_type on conversions (tenant_id, event_type, occurred_at, id)
  where listed and event_type <> conversion_type;

create table erasures (
  tenant_id int not null,
  id uuid not null,
  requested_at timestamptz not null default now(),
  subject_hash bytea not null,
  receipt jsonb not null,
  primary key (tenant_id, id)
);
-- Workers remember the nodes of people they saw: after an erasure they must forget.
create trigger erasures_changed after insert on erasures
  for each statement execute function config_changed();
