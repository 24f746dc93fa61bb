-- Where the derivation of a subscription with many versions goes on from; null: from the beginning.
alter table billing_subscriptions add column checkpoint json;
create index billing_versions_of_subscriptions on billing_versions (tenant_id, object_id, source_at)
  where kind = 'subscription';
