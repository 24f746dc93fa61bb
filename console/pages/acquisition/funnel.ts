import type { VNode } from 'preact'
import { conversions, customers, events } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { Funnel } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { Form, SelectField, TextField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Section, Tiles } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { countTypes, type TypeCounts } from '../../components/time-filter.ts'
import { number, percent, plural, visible } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { keyHint, trackCommand } from '../../samples.ts'
import { readPeriod } from '../../view.ts'
import { channelName } from '../customers.ts'
import { readFrame, readFrameSeries } from '../figures.ts'
import { AcquisitionPage, boundsOf, MAX_DAYS } from './channels.ts'

const MAX_STEPS = 6
const SUGGESTED_STEPS = 3

export const funnelPage = definePage(
  'funnel',
  async ({ route: { query }, signal }) => {
    const frame = readFrame()
    const group_by = 'event_type' as const
    const [counted, sold] = await Promise.all([
      readFrameSeries(frame, series => events.series({ ...series, group_by }, signal)),
      nullOn(
        403,
        readFrameSeries(frame, series => conversions.series({ ...series, group_by }, signal)),
      ),
    ])
    // Sales are the last step of most funnels, so they are suggested even if they are rare.
    const types = countTypes(counted.results)
    const sales = countTypes(sold?.results ?? []).slice(0, 5)
    const chosen = (query.get('steps') ?? '').split(',').filter(Boolean)
    const steps = chosen.length > 0 ? chosen : suggest(types, sales)
    const [within_days, device, breakdown] = [
      query.get('within_days') ?? '30',
      query.get('device'),
      query.get('breakdown'),
    ]
    const asked = { steps: steps.join(','), within_days, device, breakdown, ...boundsOf(readPeriod()) }
    return {
      types: [...types, ...sales],
      steps,
      within_days,
      device,
      breakdown,
      funnel: steps.length < 2 ? null : await customers.funnel(asked, signal),
    }
  },
  ({ data: { types, steps, within_days, device, breakdown, funnel } }) =>
    h(
      AcquisitionPage,
      {
        name: 'funnel',
        lead: `How many people completed these steps in this order. Each person counts once. At most the last ${MAX_DAYS} days of the period are counted.`,
      },
      types.length === 0 && steps.length === 0
        ? h(EmptyState, {
            title: 'No events in this period.',
            text: 'A funnel counts the people who complete several steps in order, for example view a page and then buy.',
            command: trackCommand(),
            action: keyHint('tracking'),
          })
        : h(FunnelForm, { types, steps, within_days, device, breakdown }),
      funnel && h(FunnelResult, { funnel, by: breakdown }),
    ),
)

function suggest(types: TypeCounts, sales: TypeCounts): string[] {
  const first = types.slice(0, sales.length > 0 ? SUGGESTED_STEPS - 1 : SUGGESTED_STEPS)
  return [...new Set([...first, ...sales.slice(0, 1)].map(([type]) => type))]
}

const WINDOWS = ['1', '7', '14', '30', '90', '365'].map(days => [days, plural(Number(days), 'day')] as const)
const DEVICES = [
  ['', 'All'],
  ['phone', 'Phones'],
  ['tablet', 'Tablets'],
  ['computer', 'Computers'],
  ['other', 'Unknown'],
] as const
const BREAKDOWNS = [
  ['', 'None'],
  ['channel', 'Channel'],
  ['source', 'Source'],
] as const

type FunnelFormProps = {
  types: TypeCounts
  steps: string[]
  within_days: string
  device: string | null
  breakdown: string | null
}

function FunnelForm({ types, steps, within_days, device, breakdown }: FunnelFormProps): VNode {
  // One empty field more than there are steps.
  const fields = Array.from({ length: Math.min(MAX_STEPS, Math.max(3, steps.length + 1)) }, (_, i) => steps[i] ?? '')
  return h(
    Form<string>,
    {
      key: `${steps} ${within_days} ${device} ${breakdown}`,
      submit: 'Show funnel',
      layout: 'filter',
      run: values => {
        const given = fields.map((_, i) => String(values[`step${i}`]).trim()).filter(Boolean)
        if (given.length < 2) throw new Error('Enter at least two steps.')
        const { within_days = null, device, breakdown } = values
        const changes = { within_days, device: device || null, breakdown: breakdown || null }
        go(link('funnel', { steps: given.join(','), ...changes }))
      },
    },
    fields.map((value, i) =>
      h(TextField, {
        ...{ id: `step${i}`, label: `Step ${i + 1}`, value, size: 14, list: 'funnel-types' },
        placeholder: i === 0 ? 'page:/pricing*' : 'Event or page:/…',
      }),
    ),
    h(SelectField, { id: 'within_days', label: 'Within', value: within_days, options: WINDOWS }),
    h(SelectField, { id: 'device', label: 'Device at start', value: device ?? '', options: DEVICES }),
    h(SelectField, { id: 'breakdown', label: 'Breakdown', value: breakdown ?? '', options: BREAKDOWNS }),
    html`
      <datalist id="funnel-types">
        ${types.filter(([type]) => visible(type) === type).map(([type, count]) => html`<option value=${type} label=${number(count)} />`)}
      </datalist>
    `,
  )
}

type Step = Funnel['steps'][number]
type Group = NonNullable<Funnel['breakdown']>[number]

function FunnelResult({ funnel: { steps, breakdown }, by }: { funnel: Funnel; by: string | null }): VNode {
  const [first, last] = [steps[0]!, steps.at(-1)!]
  if (first.people === 0)
    return h(EmptyState, {
      title: `No one did “${first.name}” in this period.`,
      text: 'Choose another first step or a longer period. Only events with a visitor or user id count.',
    })
  const nameOf = ({ name }: Group) => (by === 'channel' || name === null ? channelName(name) : name)
  return html`
    ${h(Tiles, {
      tiles: [
        { label: 'Started', value: number(first.people), note: first.name },
        { label: 'Finished', value: number(last.people), note: last.name },
        { label: 'Conversion rate', value: percent(last.total_rate), note: medianNote(last) },
      ],
    })}
    ${h(Table<Step>, { caption: 'Steps', columns: STEP_COLUMNS, rows: steps, csv: { rows: steps, name: 'funnel' } })}
    ${
      breakdown &&
      h(
        Section,
        { title: by === 'channel' ? 'By channel' : 'By source' },
        h(Table<Group>, {
          caption: 'Breakdown',
          columns: [
            { label: by === 'channel' ? 'Channel' : 'Source', cell: nameOf, kind: 'long' },
            ...groupColumns(steps),
          ],
          rows: breakdown,
          rowKey: ({ name }) => String(name),
          csv: {
            rows: breakdown.map(group => ({
              name: nameOf(group),
              ...Object.fromEntries(group.steps.map(({ name, people }) => [name, people])),
            })),
            name: 'funnel-breakdown',
          },
        }),
      )
    }
  `
}

const STEP_COLUMNS: Column<Step>[] = [
  { label: 'Step', cell: ({ name }) => name, kind: 'long' },
  { label: 'Reached', cell: ({ total_rate }) => h(ShareBar, { share: total_rate ?? 0, isWide: true }), kind: 'text' },
  { label: 'People', cell: ({ people }) => number(people), kind: 'number' },
  { label: 'Share of first step', cell: ({ total_rate }) => percent(total_rate), kind: 'number' },
  { label: 'Share of previous step', cell: ({ rate }) => percent(rate), kind: 'number' },
  { label: 'Median time', cell: ({ median_seconds }) => duration(median_seconds), kind: 'number' },
]

function groupColumns(steps: Step[]): Column<Group>[] {
  const counts = steps.map(
    ({ name }, i): Column<Group> => ({
      label: name,
      cell: group => number(group.steps[i]!.people),
      kind: 'number',
    }),
  )
  const share = ({ steps }: Group) => (steps[0]!.people === 0 ? 0 : steps.at(-1)!.people / steps[0]!.people)
  return [...counts, { label: 'Conversion rate', cell: group => h(ShareBar, { share: share(group) }), kind: 'number' }]
}

function medianNote({ median_seconds }: Step): string {
  return median_seconds === null ? '' : `half of them took less than ${duration(median_seconds)}`
}

const UNITS = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
] as const

/** In the largest unit that fits: 3 days */
function duration(seconds: number | null): string {
  if (seconds === null) return '–'
  const [size, unit] = UNITS.find(([length]) => seconds >= length) ?? [1, 'second']
  return plural(Math.round(seconds / size), unit)
}
