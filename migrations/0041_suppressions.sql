-- Names of people who were erased and are not to be recorded again: SHA-256 of "<tenant id> <kind> <value>", nothing else.
create table suppressions (
  tenant_id int not null,
  hash bytea not null,
  kind text not null,
  erasure_id uuid not null,
  suppressed_at timestamptz not null default now(),
  primary key (tenant_id, hash)
);
create index suppressions_by_erasure on suppressions (tenant_id, erasure_id);
-- Workers remember which tenants have any.
create trigger suppressions_changed after insert or delete on suppressions
  for each statement execute function config_changed();

-- What was not recorded because of them.
create table suppression_counts (
  tenant_id int primary key,
  events bigint not null,
  records bigint not null,
  last_at timestamptz not null
);

alter table receipts drop constraint receipts_outcome_check;
alter table receipts add constraint receipts_outcome_check
  check (outcome in ('processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed')) not valid;
