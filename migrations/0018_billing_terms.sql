-- What is told of coupons, promotion codes, discounts and customers by themselves: subscriptions name them by id.
create table billing_terms (
  tenant_id int not null,
  kind text collate "C" not null check (kind in ('customer', 'discount', 'promotion_code', 'coupon')),
  id text collate "C" not null,
  coupon_id text collate "C",
  promotion_code_id text collate "C",
  customer text collate "C",
  subscription_id text collate "C",
  -- a discount of the customer, for each of its subscriptions that has none of its own
  of_customer boolean not null,
  -- every telling, oldest first
  told json not null,
  primary key (tenant_id, kind, id)
);
create index billing_terms_by_coupon on billing_terms (tenant_id, coupon_id) where coupon_id is not null;
create index billing_terms_by_promotion_code on billing_terms (tenant_id, promotion_code_id)
  where promotion_code_id is not null;
create index billing_terms_of_customers on billing_terms (tenant_id, customer) where of_customer;

-- Subscriptions to be derived anew by and by: there may be many by one coupon.
create table billing_outdated (
  tenant_id int not null,
  subscription_id text collate "C" not null,
  primary key (tenant_id, subscription_id)
);
