-- Requests to sources as they came, for whoever builds what handles them (kontor listen). Kept for three days, of sources
-- that somebody listens to and of new ones.
create table inbound_requests (
  tenant_id int not null,
  source_id text collate "C" not null,
  -- where it stands in the order: as in the log, final below pg_snapshot_xmin()
  xid xid8 not null default pg_current_xact_id(),
  ord int not null,
  id uuid not null,
  received_at timestamptz not null,
  -- JSON: [[name, value], …] in their order and spelling, without credentials of ours
  headers text not null,
  -- JSON: what it was answered
  answer text not null,
  bytes int not null,
  body bytea not null,
  primary key (tenant_id, source_id, xid, ord)
);
create index inbound_requests_by_time on inbound_requests (received_at);

-- Until then everything that a source receives is kept: somebody listened in the last days.
alter table sources add column listened_until timestamptz;
