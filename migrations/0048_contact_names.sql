-- For the search: contacts by the beginning of their name, and of its last word. No more than a name has: what is longer is
-- cut off, because an index cannot hold it.
create function contact_name(data jsonb) returns text language sql immutable parallel safe as $$
  select lower(left(coalesce(nullif(data ->> 'name', ''), btrim(
    coalesce(data ->> 'firstName', data ->> 'first_name', '') || ' ' || coalesce(data ->> 'lastName', data ->> 'last_name', ''))), 200))
$$;
-- The tenant is part of the text: of an index that begins with it, without statistics any other looks as good.
create index contacts_by_name on records ((tenant_id::text || ' ' || contact_name(data)) collate "C")
  where entity_type = 'contact' and not deleted;
create index contacts_by_last_name
  on records ((tenant_id::text || ' ' || split_part(contact_name(data), ' ', -1)) collate "C")
  where entity_type = 'contact' and not deleted;
