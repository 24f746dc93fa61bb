-- Which event the visitor and the person of a sale are of, in the order in which events speak for it. Null in rows from before: the
-- one that speaks.
alter table conversions
  add column event_visitor_rank text collate "C",
  add column event_node_rank text collate "C";
