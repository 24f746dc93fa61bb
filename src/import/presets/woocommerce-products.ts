import { recordItem } from '../records.ts'
import { type Reading, rowByRow } from '../row.ts'
import { type Cells, cellsIn, present } from './cells.ts'

/** WooCommerce's own export of products. A variation has a row and an id of its own, and names its parent. */
export const woocommerceProducts = {
  entityType: 'product',
  columns: ['ID', 'Type', 'Name'],
  reading: (time: Date): Reading => {
    // parents stand before their variations, whose ids are larger
    const parents = new Map<string, string>()
    return rowByRow(({ line, cells }) => {
      const product = cellsIn(cells)
      const id = idOf(product, parents)
      if (id === null)
        return {
          line,
          column: 'Parent',
          reason: `${product.text('Parent')} stands in no row above: export all types`,
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
 * `<parent>/<id>` of a variation, as everywhere; null where its parent is not known: one that has a SKU is named by it.
 * `parents`: ids by SKU, to which this row is added.
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
