import type { VNode } from 'preact'
import type { Item, TimelineEntry } from '../../api/types.ts'
import { Badge } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Day, Time } from '../../components/time.ts'
import { lowerWords, money, number, signedMoney, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'

export function itemColumns(currency: string): Column<Item>[] {
  return [
    {
      label: 'Plan',
      cell: ({ plan_name, price_id, item_id }) => text(plan_name ?? price_id ?? item_id),
      kind: 'long',
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, currency), kind: 'number' },
    { label: 'Included', cell: countsOf },
    { label: 'Price', cell: item => priceOf(item, currency), kind: 'number', isMinor: true },
    {
      label: 'Discount',
      cell: ({ discount_mrr }) => money(discount_mrr, currency),
      kind: 'number',
      isMinor: true,
    },
    {
      label: 'Subscription',
      cell: ({ subscription_id }) => html`<code>${subscription_id}</code>`,
      kind: 'long',
      isMinor: true,
    },
    {
      label: 'Paid until',
      cell: ({ current_period_end }) => h(Day, { at: current_period_end }),
      isMinor: true,
    },
  ]
}

function countsOf({ included, exclusion_reason }: Item): VNode {
  if (included) return h(Badge, { text: 'yes', tone: 'good' })
  return html`<span>${h(Badge, { text: 'no' })} ${lowerWords(text(exclusion_reason))}</span>`
}

function priceOf(
  { quantity, unit_amount, currency, interval, interval_count }: Item,
  reported: string,
): string {
  const times = quantity === null ? '' : `${number(quantity)} × `
  const term = (interval_count ?? 1) > 1 ? `${interval_count} ${interval}s` : interval
  return `${times}${money(unit_amount, currency ?? reported)}${interval ? ` / ${term}` : ''}`
}

const LOSSES = ['churn', 'contraction']

export function timelineColumns(currency: string): Column<TimelineEntry>[] {
  return [
    { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
    { label: 'Description', cell: entry => h(What, { entry }), kind: 'long' },
    {
      label: 'Amount',
      cell: ({ mrr_delta, amount }) =>
        mrr_delta === null ? money(amount, currency) : `${signedMoney(mrr_delta, currency)} MRR`,
      kind: 'number',
    },
    { label: 'Kind', cell: ({ category }) => text(category), isMinor: true },
    {
      label: 'Subscription',
      cell: ({ subscription_id }) => text(subscription_id),
      kind: 'long',
      isMinor: true,
    },
  ]
}

function What({ entry }: { entry: TimelineEntry }): VNode {
  const { description, event_id: id, movement_type: movement } = entry
  const tone = movement && LOSSES.includes(movement) ? 'bad' : 'good'
  return html`
    ${id ? html`<a href=${link('event', { id })}>${description}</a>` : description}
    ${movement && html` ${h(Badge, { text: words(movement), tone })}`}
  `
}
