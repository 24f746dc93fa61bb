import { recordItem } from '../records.ts'
import type { Read, Reading, Row } from '../row.ts'
import { type Cells, cellsIn, plainId, present } from './cells.ts'
import { grouped } from './groups.ts'

/**
 * Shopify's product export: one row per variant and per additional picture. The first row contains the fields of the product.
 * The export has no ids, so the id of a variant is `<handle>` or `<handle>/<options>`.
 */
export const shopifyProducts = {
  entityType: 'product',
  columns: [['Handle', 'URL handle']],
  reading: (time: Date): Reading =>
    grouped(
      ({ cells }) => handleOf(cellsIn(cells)) ?? null,
      rows => {
        const product = cellsIn(rows[0].cells)
        const variants = rows.filter(row => isVariant(cellsIn(row.cells)))
        const optionNames = OPTIONS.map(n => product.text(`Option${n} Name`, `Option${n} name`))
        const images = imagesOf(rows)
        return (variants.length > 0 ? variants : [rows[0]]).map(row =>
          variantItem(row, { product, optionNames, time, images }),
        )
      },
    ),
} as const

const OPTIONS = [1, 2, 3]

function handleOf(row: Cells): string | undefined {
  return row.text('Handle', 'URL handle')
}

/** A row without any of these contains only another picture. */
function isVariant(row: Cells): boolean {
  return (
    row.text('Option1 Value', 'Option1 value', 'Variant SKU', 'SKU', 'Variant Price', 'Price') !== undefined
  )
}

type ProductFacts = { product: Cells; optionNames: (string | undefined)[]; images: string[]; time: Date }

function variantItem({ line, cells }: Row, { product, optionNames, images, time }: ProductFacts): Read {
  const variant = cellsIn(cells)
  const handle = handleOf(variant)
  const values = OPTIONS.map(n => variant.text(`Option${n} Value`, `Option${n} value`))
  const isOnly = values[0] === undefined || values[0] === 'Default Title'
  const given = isOnly ? [] : values.filter(value => value !== undefined)
  const title = product.text('Title')
  return recordItem('product', line, {
    id: handle && [handle, ...given].join('/'),
    sourceUpdatedAt: time.toISOString(),
    data: present({
      sku: plainId(variant.text('Variant SKU', 'SKU')),
      name: given.length > 0 ? `${title ?? handle} - ${given.join(' / ')}` : title,
      price: variant.number('Variant Price', 'Price'),
      compareAtPrice: variant.number('Variant Compare At Price', 'Compare-at price'),
      cost: variant.number('Cost per item'),
      barcode: plainId(variant.text('Variant Barcode', 'Barcode')),
      inventory: variant.number('Variant Inventory Qty', 'Inventory quantity'),
      handle,
      title,
      options: isOnly ? undefined : optionsOf(optionNames, values),
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

function optionsOf(names: (string | undefined)[], values: (string | undefined)[]) {
  return present(Object.fromEntries(values.map((value, i) => [names[i] ?? `Option${i + 1}`, value])))
}

function imagesOf(rows: Row[]): string[] {
  const all = rows.flatMap(({ cells }) => cellsIn(cells).text('Image Src', 'Product image URL') ?? [])
  return [...new Set(all)]
}
