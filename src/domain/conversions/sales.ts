/** What events say of one sale. Amounts are exact decimal text. */
export type EventSale = {
  tenantId: number
  saleKey: string
  /** What the row is listed under, once there is one. */
  id: string
  orderId: string | null
  eventId: string
  occurredAt: Date
  eventType: string
  conversionType: string
  source: string
  sourceConfigId: string | null
  objectId: string | null
  amount: string | null
  currency: string | null
  /** The event that amount and currency are of, and whether its sender holds a secret. */
  priceEventId: string
  priceAt: Date
  priceTrusted: boolean
  visitor: string | null
  node: number | null
  /** More than one visitor named it. */
  severalVisitors: boolean
}

/**
 * Of several events that name one sale, the first with an amount speaks, whatever came when. What it cost is told by those
 * who hold a secret, if there are any: a key that stands in every page can name an order before the shop does.
 */
export function foldSales(sales: EventSale[]): EventSale {
  const ordered = sales.toSorted(compareSales)
  const first = ordered[0]!
  const { amount, currency, priceEventId, priceAt, priceTrusted } = sales.toSorted(comparePrices)[0]!
  const visitors = new Set(ordered.flatMap(({ visitor }) => visitor ?? []))
  return {
    ...first,
    ...{ amount, currency, priceEventId, priceAt, priceTrusted },
    visitor: first.visitor ?? ordered.find(({ visitor }) => visitor !== null)?.visitor ?? null,
    node: first.node ?? ordered.find(({ node }) => node !== null)?.node ?? null,
    severalVisitors: visitors.size > 1 || ordered.some(({ severalVisitors }) => severalVisitors),
  }
}

function compareSales(a: EventSale, b: EventSale): number {
  if ((a.amount === null) !== (b.amount === null)) return a.amount === null ? 1 : -1
  const time = a.occurredAt.getTime() - b.occurredAt.getTime()
  return time !== 0 ? time : a.eventId < b.eventId ? -1 : 1
}

function comparePrices(a: EventSale, b: EventSale): number {
  if ((a.amount === null) !== (b.amount === null)) return a.amount === null ? 1 : -1
  if (a.priceTrusted !== b.priceTrusted) return a.priceTrusted ? -1 : 1
  const time = a.priceAt.getTime() - b.priceAt.getTime()
  return time !== 0 ? time : a.priceEventId < b.priceEventId ? -1 : 1
}
