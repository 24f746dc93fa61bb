-- The newest unread message of each partition of a stream on NATS, with how many entries were unread up to it, when somebody last
-- looked: where it is gone before a position has passed it, it was not read.
create table jetstream_unread (
  stream text collate "C" not null,
  partition smallint not null,
  -- of which life of the stream (jetstream_streams.created)
  created text not null,
  seq bigint not null,
  entries bigint not null,
  seen_at timestamptz not null default now(),
  primary key (stream, partition)
);

-- What was acknowledged, not processed, and is gone: a stream was deleted or purged, or lost its disk.
create table jetstream_losses (
  stream text collate "C" not null,
  noticed_at timestamptz not null default now(),
  -- at the most
  entries bigint not null,
  seen_at timestamptz not null
);
