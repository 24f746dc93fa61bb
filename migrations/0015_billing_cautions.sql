-- What a report is to warn of: more items than were told, prices with tax at unknown rates.
alter table billing_segments add column cautions text[];
create index billing_segments_with_cautions on billing_segments (tenant_id, valid_to) where cautions is not null;
