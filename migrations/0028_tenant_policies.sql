-- How a tenant counts its MRR: a row a change, none before the first.
create table tenant_policies (
  tenant_id int not null references tenants (id) on delete cascade,
  version int not null check (version > 1),
  policy json not null,
  set_at timestamptz not null default now(),
  set_by text not null,
  -- From then on all reports follow it. Null: the ledger is not restated yet, or another version came first.
  applied_at timestamptz,
  -- By currency, MRR at that moment by the policy before and by this one; null where the ledger reads alike by both.
  mrr json,
  -- How far the subscriptions are looked through that read otherwise by it.
  looked_until text collate "C" not null default '',
  primary key (tenant_id, version)
);

-- Subscriptions that may read otherwise by the policy that is to come.
create table billing_restated (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  primary key (tenant_id, subscription_id)
);
