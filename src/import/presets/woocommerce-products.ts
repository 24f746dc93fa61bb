import { recordItem } from '../records.ts'
import { type Reading, rowByRow } from '../row.ts'
import { type Cells, cellsIn, present } from './cells.ts'

/** WooCommerce's own export of products. A variation has a row and an id of its own, and names its parent. */
export const woocommerceProducts = {
  entityType: 'product',
  columns: ['ID', 'Type', 'Name'],
  reading: (time: Date): Reading =>
    rowByRow(({ line, cells }) => {
      const product = cellsIn(cells)
      return recordItem('product', line, {
        id: idOf(product),
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
    }),
} as const

/** `<parent>/<id>` of a variation whose parent is named by its id, as everywhere; by its SKU, `<id>`. */
function idOf(product: Cells): string | undefined {
  const id = product.text('ID')
  const parent = /^id:(\d+)$/.exec(product.text('Parent') ?? '')?.[1]
  const isVariation = product.text('Type')?.split(',')[0]?.trim() === 'variation'
  return id && parent && isVariation ? `${parent}/${id}` : id
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
