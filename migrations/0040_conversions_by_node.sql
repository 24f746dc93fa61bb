-- Whose sales are told of again when it turns out who they are. Where the order names the contact, that stays.
create index conversions_by_node on conversions (tenant_id, coalesce(event_node, order_node))
  where listed and order_contact_id is null;
