-- The message before a position of a log on NATS, by its id: where another one bears its number, the server has lost its newest
-- messages and gives their numbers again. Null: nothing is known of it.
alter table jetstream_cursors add column last_id text collate "C";
-- The newest time, by NATS's clock, of the messages that were read: what comes after such a loss is newer.
alter table jetstream_cursors add column last_at timestamptz;
