-- How far the readers of a log on NATS JetStream are: beside the effects, so that both commit together.
create table jetstream_streams (
  name text collate "C" primary key,
  -- When NATS made it: a stream of the same name that was made anew counts from 1 again.
  created text not null,
  partitions int not null,
  -- Without credentials: a start without NATS_URL asks there whether something is unread.
  servers text not null,
  -- As of the last look at it, which is a few seconds ago while a worker runs.
  unread bigint not null default 0,
  seen_at timestamptz not null default now(),
  -- Whoever wrote to it last has stopped in order, and nothing was unread then.
  is_drained boolean not null default false
);

-- Everything below seq is read, and the first `ord` entries of the message at seq.
create table jetstream_cursors (
  stream text collate "C" not null,
  partition smallint not null,
  seq bigint not null default 1,
  ord int not null default 0,
  updated_at timestamptz not null default now(),
  primary key (stream, partition)
) with (fillfactor = 50);
