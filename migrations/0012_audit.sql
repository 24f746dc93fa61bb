-- Who changed what: one row a change, written in the transaction that makes it. The tenant is no foreign key: the row
-- outlives whatever it tells of.
create table audit (
  id uuid primary key,
  -- the time of writing, not of the transaction's begin: changes that waited for each other stand in their order
  at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  -- a key (key_…) or whoever used the command line (cli:name)
  actor text not null,
  -- noun.verb
  action text not null,
  target text,
  -- null: it concerns the whole installation
  tenant_id int,
  ip text,
  request_id text,
  before jsonb,
  after jsonb
);
create index audit_by_time on audit (at, id);
create index audit_by_tenant on audit (tenant_id, at, id);

create function refuse_change_of_audit() returns trigger language plpgsql as $$
begin
  raise exception 'rows of the audit are never changed or deleted';
end $$;
create trigger audit_is_final before update or delete or truncate on audit
  for each statement execute function refuse_change_of_audit();
