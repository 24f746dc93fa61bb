-- What joined people can be undone: the two names that a join brought together, `node` on the side that was taken in.
-- Where they are not known (joins from before), the first names of the two profiles stand for them.
alter table identity_joins add column node bigint;
alter table identity_joins add column other bigint;

-- Who was logged in, as the event said it: who belongs together can be worked out anew from what is left of a key's events.
alter table events add column user_id text;

-- The nodes that a name had before: where it goes back to when its moving on is undone.
create index identities_retired on identities (tenant_id, kind, value) where retired_at is not null;
