import type { Random } from './random.ts'
import { isoTime, type Year } from './year.ts'

export type Currency = 'EUR' | 'USD'
/** In minor units, by currency. */
export type Price = Record<Currency, number>

export type Product = {
  sku: string
  name: string
  category: 'coffee' | 'equipment' | 'accessory' | 'gift'
  price: Price
}

const COFFEES = [
  ['ETH', 'Yirgacheffe', 1390],
  ['KEN', 'Kirinyaga', 1490],
  ['COL', 'Huila', 1190],
  ['BRA', 'Cerrado', 990],
  ['GTM', 'Antigua', 1250],
  ['RWA', 'Nyamasheke', 1350],
  ['PER', 'Cajamarca', 1150],
  ['IDN', 'Gayo', 1290],
  ['HND', 'Marcala', 1090],
  ['MIX', 'House Espresso', 1050],
  ['DEC', 'Decaf Sugarcane', 1290],
  ['FIL', 'Harbour Filter', 990],
] as const

const OTHERS = [
  ['EQ-GRINDER', 'Hand grinder', 'equipment', 11900],
  ['EQ-KETTLE', 'Gooseneck kettle', 'equipment', 7900],
  ['EQ-PRESS', 'French press 1 l', 'equipment', 3900],
  ['EQ-DRIPPER', 'Ceramic dripper', 'equipment', 2900],
  ['EQ-SCALE', 'Brewing scale', 'equipment', 4900],
  ['EQ-MOKA', 'Moka pot, 6 cups', 'equipment', 3600],
  ['AC-PAPERS', 'Filter papers, 100', 'accessory', 590],
  ['AC-CUP', 'Stoneware cup', 'accessory', 1600],
  ['AC-TIN', 'Coffee tin 500 g', 'accessory', 1290],
  ['AC-BRUSH', 'Grinder brush', 'accessory', 790],
  ['AC-TOTE', 'Tote bag', 'accessory', 1400],
  ['AC-DESCALE', 'Descaler', 'accessory', 890],
  ['GI-TASTING', 'Tasting box, 4 × 80 g', 'gift', 2490],
  ['GI-ADVENT', 'Advent calendar', 'gift', 5900],
  ['GI-CARD25', 'Gift card 25', 'gift', 2500],
  ['GI-CARD50', 'Gift card 50', 'gift', 5000],
] as const

export const PRODUCTS: Product[] = [
  ...COFFEES.flatMap(([code, name, cents]): Product[] => [
    { sku: `COF-${code}-250`, name: `${name} 250 g`, category: 'coffee', price: createPrice(cents) },
    { sku: `COF-${code}-1000`, name: `${name} 1 kg`, category: 'coffee', price: createPrice(3.5 * cents) },
  ]),
  ...OTHERS.map(([sku, name, category, cents]) => ({ sku, name, category, price: createPrice(cents) })),
]

/** Sold in spring, discontinued in summer. */
const DISCONTINUED = [
  { sku: 'COF-YEM-250', name: 'Haraz 250 g', category: 'coffee', price: createPrice(2190) },
  { sku: 'GI-EASTER', name: 'Easter box', category: 'gift', price: createPrice(2990) },
] as const satisfies Product[]

/** The dollar price is ten percent higher, and ends in 99. */
function createPrice(cents: number): Price {
  return { EUR: cents, USD: Math.round((cents * 1.1) / 100) * 100 - 1 }
}

export type RecordWrite = {
  entityType: 'product' | 'contact' | 'order'
  id: string
  sourceUpdatedAt: string
  idempotencyKey: string
  externalId?: string
  data: Record<string, unknown>
}
export type RecordDelete = { entityType: 'product'; id: string; sourceUpdatedAt: string }

/** A SKU identifies one product, so shops with other seeds have other SKUs. */
export function buildSku(product: Product, { label }: Year): string {
  return label === 'd1' ? product.sku : `${product.sku}-${label}`
}

export function productRecords(year: Year, random: Random): { writes: RecordWrite[]; deletes: RecordDelete[] } {
  const added = isoTime(year.start)
  const removed = isoTime(year.start + (year.end - year.start) / 2)
  return {
    writes: [...PRODUCTS, ...DISCONTINUED].map(product => productRecord(product, year, random, added)),
    deletes: DISCONTINUED.map(product => ({
      entityType: 'product',
      id: productId(product, year),
      sourceUpdatedAt: removed,
    })),
  }
}

function productRecord(product: Product, year: Year, random: Random, updatedAt: string): RecordWrite {
  const id = productId(product, year)
  return {
    entityType: 'product',
    id,
    sourceUpdatedAt: updatedAt,
    idempotencyKey: `${id}-1`,
    data: {
      sku: buildSku(product, year),
      name: product.name,
      category: product.category,
      price: product.price.EUR / 100,
      currency: 'EUR',
      prices: { EUR: product.price.EUR / 100, USD: product.price.USD / 100 },
      stock: random.int(0, 400),
      url: `https://shop.example/products/${product.sku.toLowerCase()}`,
    },
  }
}

function productId(product: Product, { label }: Year): string {
  return `${label}-prod-${product.sku.toLowerCase()}`
}
