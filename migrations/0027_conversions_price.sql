-- The event that a sale's amount is of, and whether its sender holds a secret (a source's token, a server's key): a key that
-- stands in every page must not settle what an order cost before the shop's own webhook comes. Null in rows from before:
-- it is the event that speaks, and one of a source is trusted.
alter table conversions
  add column price_event_id uuid,
  add column price_at timestamptz,
  add column price_trusted boolean;
