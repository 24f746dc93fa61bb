import { recordItem } from '../records.ts'
import { type Reading, rowByRow } from '../row.ts'
import { type Cells, cellsIn, present } from './cells.ts'

/** WooCommerce's product export. A variation has its own row and id, and refers to its parent. */
export const woocommerceProducts = {
  entityType: 'product',
  columns: ['ID', 'Type', 'Name'],
  reading: (time: Date): Reading => {
    // parents come before their variations, which have larger ids
    const parents = new Map<string, string>()
    return rowByRow(({ line, cells }) => {
      const product = cellsIn(cells)
      const id = idOf(product, parents)
      if (id === null)
        return {
          line,
          column: 'Parent',
          reason: `there is no row above for ${product.text('Parent')}: export all product types`,
        }
      return recordItem('product', line, {
        id,
        sourceUpdatedAt: time.toISOString(),
        data: present({
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
          attributes: attributesOf(product),
        }),
      })
    })
  },
} as const

/**
 * The id of a variation is `<parent>/<id>`, as in webhooks; null if its parent is unknown. A parent with a SKU is referred to by it.
 * `parents` maps SKUs to ids, and this function adds the row to it.
 */
function idOf(product: Cells, parents: Map<string, string>): string | null | undefined {
  const id = product.text('ID')
  const sku = product.text('SKU')
  const type = product.text('Type')?.split(',')[0]?.trim()
  if (id && sku && type?.startsWith('variable')) parents.set(sku, id)
  const named = product.text('Parent')
  if (type !== 'variation' || !id || named === undefined) return id
  const parent = /^id:(\d+)$/.exec(named)?.[1] ?? parents.get(named)
  return parent === undefined ? null : `${parent}/${id}`
}

const MOST_ATTRIBUTES = 20

function attributesOf(product: Cells) {
  const attributes: Record<string, string | undefined> = {}
  for (let n = 1; n <= MOST_ATTRIBUTES; n++) {
    const name = product.text(`Attribute ${n} name`)
    if (name !== undefined) attributes[name] = product.text(`Attribute ${n} value(s)`)
  }
  return present(attributes)
}
