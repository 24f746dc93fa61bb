-- Taking out what a tracking key added: a job, like an erasure.
create table purges (
  tenant_id int not null,
  id uuid not null,
  requested_at timestamptz not null,
  key_id text collate "C" not null,
  received_since timestamptz not null,
  received_until timestamptz,
  status text not null check (status in ('running', 'completed')),
  seen_at timestamptz not null default now(),
  -- how often people were worked out anew
  rounds int not null default 0,
  receipt jsonb not null,
  primary key (tenant_id, id)
);
create index purges_running on purges (seen_at) where status = 'running';
-- Workers forget whom they remember in every transaction that works out people anew.
create trigger purges_moved_on after update of rounds on purges
  for each statement execute function config_changed();
-- Whose events they were, and whom they joined.
create table purge_nodes (
  tenant_id int not null,
  purge_id uuid not null,
  node bigint not null,
  primary key (tenant_id, purge_id, node)
);
-- Sales that its events named: 'order:<id>' or 'invoice:<id>'.
create table purge_sales (
  tenant_id int not null,
  purge_id uuid not null,
  sale text collate "C" not null,
  primary key (tenant_id, purge_id, sale)
);
create index identity_joins_by_event on identity_joins (tenant_id, cause_id) where cause = 'event';

-- Which event said so: pairs of a key that is purged go, those of others are looked at again.
alter table identity_unjoined add column cause_id text;
create index identity_unjoined_by_event on identity_unjoined (tenant_id, cause_id) where cause_id is not null;
create index identity_unjoined_by_node on identity_unjoined (tenant_id, node);
