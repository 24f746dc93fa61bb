-- Look-ups of a record took the index of the lists for as good as the primary key while the table was small (one of its
-- columns seemed enough, the others could be skipped), and kept that plan when it had grown. Now no column of it is
-- one that a look-up names: bigint is the tenant's number too, but only to who asks for it.
drop index records_by_update;
create index records_by_update on records ((tenant_id::bigint), (entity_type || ''), updated_at, id);
