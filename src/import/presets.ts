import type { JsonObject } from '../domain/json/json.ts'
import type { EntityType } from '../domain/records/records.ts'
import { parseNumber, parseShopTimestamp, recordItem } from './readings.ts'
import type { Read, Reading, Row } from './rows.ts'

/** An export format of a shop with its required columns. An array lists alternative names of one column. */
export type Preset = {
  entityType: EntityType
  columns: readonly (string | readonly string[])[]
  reading(time: Date): Reading
}

/** A cell that is not a number. The row is rejected: an order without its amount would be wrong without anyone noticing. */
class NotANumber extends Error {
  readonly column: string
  constructor(column: string, value: string) {
    super(
      `is not a number: ${JSON.stringify(value.slice(0, 100))}. Write it with a point and without separators, for example 1299.00`,
    )
    this.column = column
  }
}

/** Turns the first cell that is not a number into a rejection of its item. */
function rejectingNumbers(line: number, read: () => Read[]): Read[] {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof NotANumber)) throw error
    return [{ line, column: error.column, reason: error.message }]
  }
}

/** Reads the cells of a row by column name. An invalid time is undefined. */
function readCells(cells: JsonObject) {
  /** The first of these columns that has a value. */
  const text = (...columns: string[]): string | undefined => {
    for (const column of columns) {
      const value = cells[column]
      if (typeof value === 'string' && value.trim() !== '') return value.trim()
    }
    return undefined
  }
  return {
    text,
    number(...columns: string[]): unknown {
      const given = text(...columns)
      if (given === undefined) return undefined
      const number = parseNumber(given)
      if (number === undefined) throw new NotANumber(columns.find(column => text(column) === given)!, given)
      return number
    },
    time(...columns: string[]): string | undefined {
      return parseShopTimestamp(text(...columns) ?? null)
    },
    boolean(...columns: string[]): boolean | undefined {
      const given = text(...columns)?.toLowerCase()
      return given === undefined ? undefined : ['true', 'yes', '1', 'active'].includes(given)
    },
    /** `a, b, c` */
    list(...columns: string[]): string[] | undefined {
      const items = text(...columns)
        ?.split(',')
        .map(item => item.trim())
        .filter(item => item !== '')
      return items && items.length > 0 ? items : undefined
    },
  }
}

type Cells = ReturnType<typeof readCells>

/** Removes undefined fields. Returns undefined if nothing remains. */
function omitUndefined(fields: JsonObject): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Exports put an apostrophe before long numbers, so that spreadsheets do not round them. */
function plainId(text: string | undefined): string | undefined {
  return text?.replace(/^'/, '')
}

// Bounds memory. An order has at most 500 items, a product 2,048 variants and 250 pictures.
const MAX_ROWS = 10_000

/** A reading that converts each row separately. */
function readEachRow(read: (row: Row) => Read): Reading {
  return { push: row => rejectingNumbers(row.line, () => [read(row)]), end: () => [] }
}

/** A reading that groups consecutive rows with the same name. */
function groupRows(nameOf: (row: Row) => string | null, read: (rows: [Row, ...Row[]]) => Read[]): Reading {
  let name: string | null = null
  let open: [Row, ...Row[]] | null = null
  const close = () => {
    const rows = open
    open = null
    return rows ? rejectingNumbers(rows[0].line, () => read(rows)) : []
  }
  return {
    push(row) {
      const own = nameOf(row)
      if (open && own !== null && own === name) {
        if (open.length >= MAX_ROWS)
          return [
            { line: row.line, column: null, reason: `there are more than ${MAX_ROWS} rows of ${own.slice(0, 100)}` },
          ]
        open.push(row)
        return []
      }
      const reads = close()
      name = own
      open = [row]
      return reads
    },
    end: close,
  }
}

/** Shopify's customer export, with its current column names and those before 2023. */
const shopifyCustomers = {
  entityType: 'contact',
  columns: ['Customer ID', 'Email'],
  reading: (time: Date): Reading =>
    readEachRow(({ line, cells }) => {
      const customer = readCells(cells)
      return recordItem('contact', line, {
        id: plainId(customer.text('Customer ID')),
        sourceUpdatedAt: time.toISOString(),
        data: customerData(customer),
      })
    }),
} as const

function customerData(customer: Cells) {
  const address = (name: string) => plainId(customer.text(`Default Address ${name}`, name))
  return omitUndefined({
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

/** Shopify's order export: one row per line item. Only the first row of an order contains the other fields. */
const shopifyOrders = {
  entityType: 'order',
  columns: ['Name', 'Id', 'Created at', 'Total'],
  reading: (): Reading =>
    groupRows(
      ({ cells }) => readCells(cells).text('Name') ?? null,
      rows => {
        const [{ line, cells }] = rows
        const order = readCells(cells)
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
  const times = ['Created at', 'Paid at', 'Fulfilled at', 'Cancelled at'].flatMap(column => order.time(column) ?? [])
  return times.sort((a, b) => Date.parse(a) - Date.parse(b)).at(-1)
}

function orderData(order: Cells, rows: Row[]) {
  return omitUndefined({
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
    billing_address: readAddress(order, 'Billing'),
    shipping_address: readAddress(order, 'Shipping'),
    line_items: rows.flatMap(({ cells }) => lineItem(readCells(cells)) ?? []),
  })
}

function lineItem(row: Cells) {
  return omitUndefined({
    name: row.text('Lineitem name'),
    sku: row.text('Lineitem sku'),
    quantity: row.number('Lineitem quantity'),
    price: row.number('Lineitem price'),
    discount: row.number('Lineitem discount'),
    vendor: row.text('Vendor'),
  })
}

function readAddress(row: Cells, whose: 'Billing' | 'Shipping') {
  return omitUndefined({
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

/**
 * Shopify's product export: one row per variant and per additional picture. The first row contains the fields of the product.
 * The export has no ids, so the id of a variant is `<handle>` or `<handle>/<options>`.
 */
const shopifyProducts = {
  entityType: 'product',
  columns: [['Handle', 'URL handle']],
  reading: (time: Date): Reading =>
    groupRows(
      ({ cells }) => readHandle(readCells(cells)) ?? null,
      rows => {
        const product = readCells(rows[0].cells)
        const variants = rows.filter(row => isVariant(readCells(row.cells)))
        const optionNames = OPTIONS.map(n => product.text(`Option${n} Name`, `Option${n} name`))
        const images = listImages(rows)
        return (variants.length > 0 ? variants : [rows[0]]).map(row =>
          variantItem(row, { product, optionNames, time, images }),
        )
      },
    ),
} as const

const OPTIONS = [1, 2, 3]

function readHandle(row: Cells): string | undefined {
  return row.text('Handle', 'URL handle')
}

/** A row without any of these contains only another picture. */
function isVariant(row: Cells): boolean {
  return row.text('Option1 Value', 'Option1 value', 'Variant SKU', 'SKU', 'Variant Price', 'Price') !== undefined
}

type ProductFacts = { product: Cells; optionNames: (string | undefined)[]; images: string[]; time: Date }

function variantItem({ line, cells }: Row, { product, optionNames, images, time }: ProductFacts): Read {
  const variant = readCells(cells)
  const handle = readHandle(variant)
  const values = OPTIONS.map(n => variant.text(`Option${n} Value`, `Option${n} value`))
  const isOnly = values[0] === undefined || values[0] === 'Default Title'
  const given = isOnly ? [] : values.filter(value => value !== undefined)
  const title = product.text('Title')
  return recordItem('product', line, {
    id: handle && [handle, ...given].join('/'),
    sourceUpdatedAt: time.toISOString(),
    data: omitUndefined({
      sku: plainId(variant.text('Variant SKU', 'SKU')),
      name: given.length > 0 ? `${title ?? handle} - ${given.join(' / ')}` : title,
      price: variant.number('Variant Price', 'Price'),
      compareAtPrice: variant.number('Variant Compare At Price', 'Compare-at price'),
      cost: variant.number('Cost per item'),
      barcode: plainId(variant.text('Variant Barcode', 'Barcode')),
      inventory: variant.number('Variant Inventory Qty', 'Inventory quantity'),
      handle,
      title,
      options: isOnly ? undefined : buildOptions(optionNames, values),
      description: product.text('Body (HTML)', 'Description'),
      vendor: product.text('Vendor'),
      category: product.text('Product Category', 'Product category'),
      type: product.text('Type'),
      tags: product.list('Tags'),
      status: product.text('Status'),
      published: product.boolean('Published', 'Published on online store'),
      image: variant.text('Variant Image', 'Variant image URL') ?? images[0],
      images: images.length > 1 ? images : undefined,
    }),
  })
}

function buildOptions(names: (string | undefined)[], values: (string | undefined)[]) {
  return omitUndefined(Object.fromEntries(values.map((value, i) => [names[i] ?? `Option${i + 1}`, value])))
}

function listImages(rows: Row[]): string[] {
  const all = rows.flatMap(({ cells }) => readCells(cells).text('Image Src', 'Product image URL') ?? [])
  return [...new Set(all)]
}

/** WooCommerce's product export. A variation has its own row and id, and refers to its parent. */
const woocommerceProducts = {
  entityType: 'product',
  columns: ['ID', 'Type', 'Name'],
  reading: (time: Date): Reading => {
    // parents come before their variations, which have larger ids
    const parents = new Map<string, string>()
    return readEachRow(({ line, cells }) => {
      const product = readCells(cells)
      const id = readId(product, parents)
      if (id === null)
        return {
          line,
          column: 'Parent',
          reason: `there is no row above for ${product.text('Parent')}: export all product types`,
        }
      return recordItem('product', line, {
        id,
        sourceUpdatedAt: time.toISOString(),
        data: omitUndefined({
          sku: product.text('SKU'),
          name: product.text('Name'),
          price: product.number('Sale price') ?? product.number('Regular price'),
          regularPrice: product.number('Regular price'),
          salePrice: product.number('Sale price'),
          type: product.text('Type'),
          parent: product.text('Parent'),
          published: product.boolean('Published'),
          inStock: product.boolean('In stock?'),
          stock: product.number('Stock'),
          categories: product.list('Categories'),
          tags: product.list('Tags'),
          images: product.list('Images'),
          barcode: product.text('GTIN, UPC, EAN, or ISBN'),
          description: product.text('Description'),
          shortDescription: product.text('Short description'),
          attributes: readAttributes(product),
        }),
      })
    })
  },
} as const

/**
 * The id of a variation is `<parent>/<id>`, as in webhooks; null if its parent is unknown. A parent with a SKU is referred to by it.
 * `parents` maps SKUs to ids, and this function adds the row to it.
 */
function readId(product: Cells, parents: Map<string, string>): string | null | undefined {
  const id = product.text('ID')
  const sku = product.text('SKU')
  const type = product.text('Type')?.split(',')[0]?.trim()
  if (id && sku && type?.startsWith('variable')) parents.set(sku, id)
  const named = product.text('Parent')
  if (type !== 'variation' || !id || named === undefined) return id
  const parent = /^id:(\d+)$/.exec(named)?.[1] ?? parents.get(named)
  return parent === undefined ? null : `${parent}/${id}`
}

const MAX_ATTRIBUTES = 20

function readAttributes(product: Cells) {
  const attributes: Record<string, string | undefined> = {}
  for (let n = 1; n <= MAX_ATTRIBUTES; n++) {
    const name = product.text(`Attribute ${n} name`)
    if (name !== undefined) attributes[name] = product.text(`Attribute ${n} value(s)`)
  }
  return omitUndefined(attributes)
}

export const PRESETS: Record<string, Preset> = {
  'shopify-products': shopifyProducts,
  'shopify-customers': shopifyCustomers,
  'shopify-orders': shopifyOrders,
  'woocommerce-products': woocommerceProducts,
}
