-- A stream on NATS that is not used any more keeps its positions: what was processed stays in it, and would be read again.
alter table jetstream_streams add column left_at timestamptz;
-- Since when something of it is unread, as far as anybody has looked.
alter table jetstream_streams add column unread_since timestamptz;

-- Processes that write to a stream. Each says so every few seconds, and goes when it stops in order: nobody leaves a stream that
-- others write to.
create table jetstream_writers (
  stream text collate "C" not null,
  process uuid not null,
  -- the machine and the process, for people
  name text not null,
  -- The life of the stream that it writes to (jetstream_streams.created); null: it has not found it yet.
  created text,
  seen_at timestamptz not null default now(),
  primary key (stream, process)
);
