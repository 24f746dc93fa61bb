-- Requests with a key that were refused stand among those of sources: a sample with the beginning of the body.
alter table rejections
  alter column source_id drop not null,
  add column key_id text,
  add column route text,
  -- what refusals have in common that were refused for the same reason
  add column cause text,
  add column body text;
create index rejections_of_keys on rejections (tenant_id, id) where source_id is null;

-- All of them, counted.
create table refusal_sums (
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
