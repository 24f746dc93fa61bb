import { recordItem } from '../records.ts'
import { type Reading, rowByRow } from '../row.ts'
import { type Cells, cellsIn, plainId, present } from './cells.ts'

/** Shopify's customer export, with its current column names and those before 2023. */
export const shopifyCustomers = {
  entityType: 'contact',
  columns: ['Customer ID', 'Email'],
  reading: (time: Date): Reading =>
    rowByRow(({ line, cells }) => {
      const customer = cellsIn(cells)
      return recordItem('contact', line, {
        id: plainId(customer.text('Customer ID')),
        sourceUpdatedAt: time.toISOString(),
        data: customerData(customer),
      })
    }),
} as const

function customerData(customer: Cells) {
  const address = (name: string) => plainId(customer.text(`Default Address ${name}`, name))
  return present({
    email: customer.text('Email'),
    firstName: customer.text('First Name'),
    lastName: customer.text('Last Name'),
    company: address('Company'),
    phone: plainId(customer.text('Phone', 'Default Address Phone')),
    address1: address('Address1'),
    address2: address('Address2'),
    city: address('City'),
    province: customer.text('Default Address Province Code', 'Province Code', 'Province'),
    country: customer.text('Default Address Country Code', 'Country Code', 'Country'),
    zip: address('Zip'),
    acceptsMarketing: customer.boolean('Accepts Email Marketing', 'Accepts Marketing'),
    totalSpent: customer.number('Total Spent'),
    totalOrders: customer.number('Total Orders'),
    taxExempt: customer.boolean('Tax Exempt'),
    note: customer.text('Note'),
    tags: customer.list('Tags'),
  })
}
