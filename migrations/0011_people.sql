-- Joining is careful. A name belongs to one person at a time: one that moves on leaves its old node behind, retired, with
-- whom it was. A node is what events keep, so what was stays and what comes goes to the new one.
alter table identities drop constraint identities_pkey;
alter table identities add column retired_at timestamptz;
-- A record, a server or an operator said that the name belongs here; not merely an event that anybody could have sent.
alter table identities add column trusted boolean not null default false;
create unique index identities_by_name on identities (tenant_id, kind, value) where retired_at is null;
-- Until now nobody was asked who said it: what there is keeps its say.
update identities set trusted = true;

-- Why names belong together, so that it can be explained and undone. `nodes` are those that came from `from_profile`.
create table identity_joins (
  tenant_id int not null,
  id bigint generated always as identity,
  profile bigint not null,
  from_profile bigint not null,
  nodes bigint[] not null,
  cause text not null check (cause in ('event', 'record', 'sale', 'command')),
  cause_id text not null,
  joined_at timestamptz not null default now(),
  undone_at timestamptz,
  primary key (tenant_id, id)
);
create index identity_joins_by_source on identity_joins (tenant_id, from_profile);
create index identity_joins_by_profile on identity_joins (tenant_id, profile);
create index identity_joins_by_sale on identity_joins (tenant_id, cause_id) where cause = 'sale' and undone_at is null;

-- Seen together, but the profile was full: an erasure of the one takes the other's events along.
create table identity_unjoined (
  tenant_id int not null,
  node bigint not null,
  other bigint not null,
  primary key (tenant_id, other, node)
);

-- Workers remember nodes. It moves when a name got a new one, or when joined names were parted.
create table identity_versions (
  tenant_id int primary key,
  version bigint not null
) with (fillfactor = 50);

-- Which key brought an event in: what a stranger did with a public key can be found and taken out again.
alter table events add column key_id text collate "C";

-- Events of one order are one sale only within one person, until the order's record says whose it is: rows of an order
-- are found by its id. An order that several visitors named joins nobody.
alter table conversions add column order_id text collate "C";
alter table conversions add column several_visitors boolean not null default false;
update conversions set order_id = substr(sale_key, length('order:') + 1) where sale_key like 'order:%';
create index conversions_by_order on conversions (tenant_id, order_id) where order_id is not null;
create index conversions_by_person on conversions (tenant_id, event_node) where order_id is not null and order_state is null;

-- A tracking key that only servers have may say who is who; one that stands in every page may not.
alter table api_keys add column server boolean not null default false;
