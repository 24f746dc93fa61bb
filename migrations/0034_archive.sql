-- Whether events and conversions are written to files elsewhere, and where.
create table archive_state (
  one_row boolean primary key default true check (one_row),
  enabled boolean not null default false,
  url text,
  -- why Kontor disabled it; null where somebody did, or it never was on
  disabled_reason text
);
insert into archive_state default values;
-- Workers remember whether to keep a note of what they apply.
create trigger archive_state_changed after update on archive_state
  for each statement execute function config_changed();

-- Which node writes files, and how that goes: not in the table above, whose changes are told to all nodes.
create table archive_progress (
  one_row boolean primary key default true check (one_row),
  owner uuid,
  leased_until timestamptz not null default '-infinity',
  failed_at timestamptz,
  error text
);
insert into archive_progress default values;

-- What took effect and stands in no file yet: written with the effects. Without an index: it is emptied from its beginning.
create table archive_queue (
  tenant_id int not null,
  what text collate "C" not null check (what in ('events', 'conversions')),
  id uuid not null,
  -- whose hour is the folder
  received_at timestamptz not null,
  -- of an event: with its id it is found again
  occurred_at timestamptz not null,
  bytes int not null,
  -- of a conversion: JSON of the row after the change
  body text
);

-- Every file. What it holds is decided before it is written: however often that is tried, it is the same file.
create table archive_files (
  id uuid primary key,
  tenant_id int not null,
  what text collate "C" not null,
  hour timestamptz not null,
  planned_at timestamptz not null default now(),
  -- rows and bytes as they were written
  rows int not null,
  bytes bigint,
  written_at timestamptz,
  -- until it is written
  ids uuid[],
  occurred_at timestamptz[],
  bodies text[]
);
create index archive_files_unwritten on archive_files (planned_at) where written_at is null;
create index archive_files_by_tenant on archive_files (tenant_id, what, hour);
