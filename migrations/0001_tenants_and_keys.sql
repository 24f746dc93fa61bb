create table tenants (
  id int generated always as identity primary key,
  name text not null unique,
  -- null: the default list
  conversion_types text[],
  created_at timestamptz not null default now()
);

-- Private, tracking and admin keys. An admin key belongs to no tenant. Only hashes are kept.
create table api_keys (
  id text collate "C" primary key,
  tenant_id int references tenants (id) on delete cascade,
  kind text not null check (kind in ('private', 'tracking', 'admin')),
  hash bytea not null unique,
  hint text not null,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  check ((kind = 'admin') = (tenant_id is null))
);
create index api_keys_by_tenant on api_keys (tenant_id, created_at);

create table settings (
  name text primary key,
  value text not null
);

-- Nodes keep keys, tenants and sources in memory. Every change moves this counter and sends a notice:
-- a node that listens hears of it at once, one behind a transaction pooler sees the counter move.
create table config_version (
  only_row boolean primary key default true check (only_row),
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
create trigger api_keys_changed after insert or delete or update of scopes, expires_at, revoked_at on api_keys
  for each statement execute function config_changed();
