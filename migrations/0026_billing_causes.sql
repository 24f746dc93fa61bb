-- Why the MRR of a subscription changed with a segment, and the event behind it.
alter table billing_segments add column cause text collate "C", add column event_id uuid;
