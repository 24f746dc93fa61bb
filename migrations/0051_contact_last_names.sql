-- The last word without a regular expression, which took 20 µs of every write of a contact.
drop index contacts_by_last_name;
create index contacts_by_last_name
  on records ((tenant_id::text || ' ' || split_part(contact_name(data), ' ', -1)) collate "C")
  where entity_type = 'contact' and not deleted;
