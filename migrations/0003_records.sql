create table records (
  tenant_id int not null,
  entity_type text collate "C" not null,
  id text collate "C" not null,
  external_id text collate "C",
  -- The newest write, or delete by id. A delete by another name never moves it: see record_tombstones.
  source_updated_at timestamptz not null,
  -- the entry that brought it: of equal source times, the later arrival wins
  entry_id uuid not null,
  deleted boolean not null,
  -- null when deleted
  data jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- names of products; what is longer than a name may be stays data
  sku text collate "C"
    generated always as (case when entity_type = 'product' and length(data ->> 'sku') <= 255 then data ->> 'sku' end) stored,
  code text collate "C"
    generated always as (case when entity_type = 'product' and length(data ->> 'code') <= 255 then data ->> 'code' end) stored,
  primary key (tenant_id, entity_type, id)
) with (fillfactor = 90);
create index records_by_sku on records (tenant_id, sku) where sku is not null;
create index records_by_code on records (tenant_id, code) where code is not null;
create index records_by_external_id on records (tenant_id, external_id) where external_id is not null;
-- For lists. The type is an expression so that look-ups of a record by type and id do not take this index for as good as
-- the primary key, which they do on a table without statistics, and then read everything of the type.
create index records_by_update on records (tenant_id, (entity_type || ''), updated_at, id);

-- A delete by externalId, sku or code, kept so that an older write that arrives later stays deleted.
create table record_tombstones (
  tenant_id int not null,
  entity_type text collate "C" not null,
  name text collate "C" not null check (name in ('external_id', 'sku', 'code')),
  value text collate "C" not null,
  source_updated_at timestamptz not null,
  entry_id uuid not null,
  primary key (tenant_id, entity_type, name, value)
);
