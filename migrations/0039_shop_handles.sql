-- Whose handles they are, as the shop's webhooks have told: a file of products, which knows handles only, finds by them that a
-- product is there.
create table shop_handles (
  tenant_id int not null,
  handle text collate "C" not null,
  -- the product's record, or the first part of the ids of its variants' records
  product_id text collate "C" not null,
  -- by the shop's clock: of two products that had it, the one that had it last
  told_at timestamptz not null,
  primary key (tenant_id, handle)
);

-- Handles of Shopify's products that were told before.
insert into shop_handles (tenant_id, handle, product_id, told_at)
select distinct on (tenant_id, data ->> 'handle')
  tenant_id, data ->> 'handle', data ->> 'product_id', source_updated_at
from records
where entity_type = 'product' and not deleted and data -> 'source' is not null and data ->> 'handle' <> ''
  and (id = data ->> 'product_id' or id = (data ->> 'product_id') || '/' || (data ->> 'variant_id'))
order by tenant_id, data ->> 'handle', source_updated_at desc;
