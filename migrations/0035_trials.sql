-- Trials by when they began, of however many subscriptions there are.
create index billing_segments_trials on billing_segments (tenant_id, currency, valid_from) where status = 'trialing';
