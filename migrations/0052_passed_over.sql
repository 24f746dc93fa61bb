-- Messages of a stream on NATS in which no entries can be read: somebody else's, and those of Kontor's own that are broken. Positions
-- move past them. Kept for as long as the stream keeps its messages.
create table jetstream_passed_over (
  stream text collate "C" not null,
  seq bigint not null,
  -- By NATS's clock: a stream that is made anew gives its numbers again.
  stored_at timestamptz not null,
  subject text not null,
  reason text not null,
  is_foreign boolean not null,
  -- Of Kontor's own that belong to no single tenant; what belongs to one is among its dead letters.
  payload bytea,
  passed_at timestamptz not null default now(),
  primary key (stream, seq, stored_at)
);
