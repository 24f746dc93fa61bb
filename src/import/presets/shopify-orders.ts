import { recordItem } from '../records.ts'
import type { Reading, Row } from '../row.ts'
import { type Cells, cellsIn, plainId, present } from './cells.ts'
import { grouped } from './groups.ts'

/** Shopify's order export: one row per line item. Only the first row of an order contains the other fields. */
export const shopifyOrders = {
  entityType: 'order',
  columns: ['Name', 'Id', 'Created at', 'Total'],
  reading: (): Reading =>
    grouped(
      ({ cells }) => cellsIn(cells).text('Name') ?? null,
      rows => {
        const [{ line, cells }] = rows
        const order = cellsIn(cells)
        return [
          recordItem('order', line, {
            id: plainId(order.text('Id')),
            externalId: order.text('Name'),
            sourceUpdatedAt: lastChange(order),
            data: orderData(order, rows),
          }),
        ]
      },
    ),
} as const

/** The latest time in the row. Versions that a webhook reports later are newer. */
function lastChange(order: Cells): string | undefined {
  const times = ['Created at', 'Paid at', 'Fulfilled at', 'Cancelled at'].flatMap(
    column => order.time(column) ?? [],
  )
  return times.sort((a, b) => Date.parse(a) - Date.parse(b)).at(-1)
}

function orderData(order: Cells, rows: Row[]) {
  return present({
    name: order.text('Name'),
    email: order.text('Email'),
    phone: order.text('Phone'),
    total_price: order.number('Total'),
    subtotal_price: order.number('Subtotal'),
    total_tax: order.number('Taxes'),
    total_shipping: order.number('Shipping'),
    total_discounts: order.number('Discount Amount'),
    refunded_amount: order.number('Refunded Amount'),
    currency: order.text('Currency'),
    created_at: order.time('Created at'),
    paid_at: order.time('Paid at'),
    fulfilled_at: order.time('Fulfilled at'),
    cancelled_at: order.time('Cancelled at'),
    financial_status: order.text('Financial Status'),
    fulfillment_status: order.text('Fulfillment Status'),
    discount_code: order.text('Discount Code'),
    payment_method: order.text('Payment Method'),
    source_name: order.text('Source'),
    note: order.text('Notes'),
    tags: order.list('Tags'),
    billing_address: addressOf(order, 'Billing'),
    shipping_address: addressOf(order, 'Shipping'),
    line_items: rows.flatMap(({ cells }) => lineItem(cellsIn(cells)) ?? []),
  })
}

function lineItem(row: Cells) {
  return present({
    name: row.text('Lineitem name'),
    sku: row.text('Lineitem sku'),
    quantity: row.number('Lineitem quantity'),
    price: row.number('Lineitem price'),
    discount: row.number('Lineitem discount'),
    vendor: row.text('Vendor'),
  })
}

function addressOf(row: Cells, whose: 'Billing' | 'Shipping') {
  return present({
    name: row.text(`${whose} Name`),
    company: row.text(`${whose} Company`),
    address1: row.text(`${whose} Address1`),
    address2: row.text(`${whose} Address2`),
    city: row.text(`${whose} City`),
    zip: plainId(row.text(`${whose} Zip`)),
    province: row.text(`${whose} Province`),
    country: row.text(`${whose} Country`),
    phone: plainId(row.text(`${whose} Phone`)),
  })
}
