import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { keys, tenants } from '../api/admin.ts'
import { nullOn } from '../api/request.ts'
import type { ImportedRates, Policy, TenantSettings } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { ActionButton, Form, type FormValues, SelectField, TextArea, TextField } from '../components/form.ts'
import { EmptyState, ProblemArea } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { Actor, type Hints, keyName } from '../components/text.ts'
import { Day } from '../components/time.ts'
import { day, number, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { setTenantFacts, tenantFacts } from '../view.ts'

/** The settings of the selected tenant: reports, MRR, channels, events. */
export const settingsPage = definePage(
  'settings',
  async ({ signal }) => {
    const id = tenant.peek()
    if (id === null) return null
    const [{ results }, policy, admins] = await Promise.all([
      tenants.list(signal),
      tenants.policy(id, signal),
      nullOn(403, keys.list(null, signal)),
    ])
    const hints: Hints = new Map(admins?.results.map(key => [key.id, keyName(key)]))
    return { own: results.find(each => each.id === id) ?? null, policy, hints }
  },
  ({ data, refresh }) => {
    if (!data?.own) return h(Page, { title: 'Settings' }, h(NoTenant, {}))
    const { own, policy, hints } = data
    return h(
      Page,
      {
        title: 'Settings',
        lead: html`Settings of the tenant ${own.name}. The <a href=${link('audit')}>audit log</a> lists every change.`,
      },
      !policy.applied && html`<p class="notice">MRR is being recomputed. Reports still use the previous settings.</p>`,
      html`<div class="beside">
        ${h(Section, { title: 'Reports' }, h(ReportForm, { policy, refresh }))}
        ${h(Section, { title: 'Exchange rates' }, h(RateForm, { policy }))}
      </div>`,
      html`<div class="beside">
        ${h(Section, { title: 'MRR' }, h(MrrForm, { policy, refresh }))}
        ${h(Section, { title: 'Events' }, h(EventForm, { own, refresh }))}
      </div>`,
      h(Section, { title: 'Channels' }, h(ChannelForm, { key: JSON.stringify(policy.channels), policy, refresh })),
      html`<div class="beside">${h(Section, { title: 'Plan groups' }, h(PlanGroupForm, { policy, refresh }))}</div>`,
      policy.set_at !== null &&
        html`<p class="faint">Version ${policy.version} of the policy (reports, MRR, channels and plan groups), set ${h(Day, { at: policy.set_at })} by ${policy.set_by !== null && h(Actor, { actor: policy.set_by, hints })}.</p>`,
    )
  },
)

function NoTenant(): VNode {
  return h(EmptyState, {
    title: 'No tenant is selected.',
    action: html`<a href=${link('tenants')}>Tenants</a>`,
  })
}

type PolicyProps = { policy: Policy; refresh(): Promise<void> }

/** The bar reads the time zone and the currency of the tenant again. */
async function savePolicy({ policy, refresh }: PolicyProps, settings: Partial<Policy>): Promise<void> {
  await tenants.setPolicy(policy.tenant, settings as Parameters<typeof tenants.setPolicy>[1])
  setTenantFacts(null)
  await refresh()
  toast('Saved')
}

const NONE_SET = 'none'

function ReportForm(props: PolicyProps): VNode {
  const { time_zone: zone, reporting_currency: reporting } = props.policy
  const save = ({ time_zone, reporting_currency }: FormValues<'time_zone' | 'reporting_currency'>) =>
    savePolicy(props, { time_zone, reporting_currency: reporting_currency.trim() || NONE_SET })
  const used = tenantFacts.value?.currencies ?? []
  return h(
    Form<'time_zone' | 'reporting_currency'>,
    { key: `${zone} ${reporting}`, submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
    h(TextField, {
      ...{ id: 'time_zone', label: 'Time zone', value: zone, list: 'time-zones' },
      hint: 'Reports use this time zone, for example Europe/Berlin.',
    }),
    html`<datalist id="time-zones">${Intl.supportedValuesOf('timeZone').map(name => html`<option value=${name} />`)}</datalist>`,
    h(TextField, {
      ...{ id: 'reporting_currency', label: 'Reporting currency', value: reporting === NONE_SET ? '' : reporting },
      ...{ list: 'currencies', size: 8, placeholder: 'EUR' },
      hint: 'Reports can convert all amounts to this currency. Leave empty for no conversion.',
    }),
    html`<datalist id="currencies">${used.map(code => html`<option value=${code} />`)}</datalist>`,
  )
}

/** Below the size limit of a request. */
const PORTION_LINES = 1_500

/** Every portion repeats the first line. */
async function importRates(id: string, csv: string): Promise<Omit<ImportedRates, 'tenant' | 'currencies'>> {
  const [header = '', ...lines] = csv.trim().split(/\r?\n/)
  const parts: ImportedRates[] = []
  for (let done = 0; done < Math.max(1, lines.length); done += PORTION_LINES)
    parts.push(await tenants.importRates(id, [header, ...lines.slice(done, done + PORTION_LINES)].join('\n')))
  const sum = (name: 'days' | 'rates') => parts.reduce((all, part) => all + part[name], 0)
  return {
    ...{ days: sum('days'), rates: sum('rates') },
    first: parts.map(({ first }) => first).toSorted()[0]!,
    last: parts
      .map(({ last }) => last)
      .toSorted()
      .at(-1)!,
  }
}

function RateForm({ policy }: { policy: Policy }): VNode {
  const imported = useSignal<Awaited<ReturnType<typeof importRates>> | null>(null)
  const run = async (_: FormValues<'rates'>, all: FormData) => {
    const file = all.get('rates')
    if (!(file instanceof File) || file.size === 0) throw new Error('Choose a CSV file.')
    imported.value = await importRates(policy.tenant, await file.text())
    toast('Rates imported')
  }
  const done = imported.value
  return html`
    <p>
      Reports in the reporting currency use the rate of each day, or the last rate before it. Import the file
      ${' '}<code>eurofxref-hist.csv</code> of the European Central Bank, or your own. Columns: <code>Date</code>, then one
      per currency, such as <code>USD</code>. Values: units per euro. Imported days replace existing ones.
    </p>
    ${h(
      Form<'rates'>,
      { submit: 'Import rates', needs: 'admin', layout: 'stacked', run },
      html`<div class="field"><label for="rates">Rates (CSV)</label><input id="rates" name="rates" type="file" accept=".csv,text/csv" /></div>`,
    )}
    ${done && html`<p class="notice">${number(done.rates)} rates of ${plural(done.days, 'day')} imported, from ${day(done.first)} to ${day(done.last)}.</p>`}
  `
}

const EFFECTS = [
  ['churn', 'Count as churn'],
  ['keep', 'Keep their MRR'],
] as const
type MrrField = 'pause' | 'trial_on_paying' | 'past_due_grace_days' | 'net_within_day' | 'retention_base'

/** A change restates the ledger; reports switch when that is done. */
function MrrForm(props: PolicyProps): VNode {
  const { policy } = props
  const save = ({ net_within_day, ...values }: FormValues<MrrField>) => {
    const days = values.past_due_grace_days.trim()
    return savePolicy(props, {
      ...values,
      past_due_grace_days: (/^\d+$/.test(days) ? Number(days) : days || NONE_SET) as Policy['past_due_grace_days'],
      net_within_day: net_within_day === 'true',
    })
  }
  return h(
    Form<MrrField>,
    { key: JSON.stringify(policy), submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
    h(SelectField, { id: 'pause', label: 'Paused subscriptions', options: EFFECTS, value: policy.pause }),
    h(SelectField, {
      ...{ id: 'trial_on_paying', label: 'Paying subscriptions that return to a trial' },
      ...{ options: EFFECTS, value: policy.trial_on_paying },
    }),
    h(TextField, {
      ...{ id: 'past_due_grace_days', label: 'Days that a past-due subscription stays in MRR', size: 8 },
      value: policy.past_due_grace_days === NONE_SET ? '' : String(policy.past_due_grace_days),
      hint: 'Leave empty for no limit.',
    }),
    h(SelectField, {
      ...{ id: 'net_within_day', label: 'Several changes on one day', value: String(policy.net_within_day) },
      options: [
        ['false', 'Count each'],
        ['true', 'Count only the net change'],
      ],
    }),
    h(SelectField, {
      ...{ id: 'retention_base', label: 'Starting MRR for retention', value: policy.retention_base },
      options: [
        ['first_instant', 'First MRR of the account'],
        ['end_of_month', 'MRR at the end of the first month'],
      ],
    }),
  )
}

type EventField = 'conversion_types' | 'events_floor' | 'ip_addresses'

function EventForm({ own, refresh }: { own: TenantSettings; refresh(): Promise<void> }): VNode {
  const { id, conversion_types: types, events_floor: floor, ip_addresses: addresses } = own
  const save = async (values: FormValues<EventField>) => {
    const named = splitList(values.conversion_types)
    await tenants.change(id, {
      conversion_types: named.length > 0 ? named : null,
      events_floor: values.events_floor.trim() || null,
      ip_addresses: values.ip_addresses as TenantSettings['ip_addresses'],
    })
    await refresh()
    toast('Saved')
  }
  return h(
    Form<EventField>,
    { key: JSON.stringify(own), submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
    h(TextField, {
      ...{ id: 'conversion_types', label: 'Event types that count as conversions' },
      ...{ value: types?.join(', ') ?? '', placeholder: 'convert, purchase' },
      hint: 'Separate with commas. Leave empty for the defaults.',
    }),
    h(TextField, {
      ...{ id: 'events_floor', label: 'Maximum event age', value: floor ?? '', placeholder: '3650d', size: 8 },
      hint: 'Applies to events sent with public tracking keys. The time of an older event is set to the oldest allowed time. For example 3650d, or off for no limit. Leave empty to use the default of the server.',
    }),
    h(SelectField, {
      ...{ id: 'ip_addresses', label: 'IP addresses of events', value: addresses },
      options: [
        ['keep', 'Keep'],
        ['truncate', 'Truncate to the network'],
        ['drop', 'Drop'],
      ],
      hint: 'Applied before events are stored. Existing events are not changed.',
    }),
  )
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
}

type Rule = Policy['channels'][number]
const CONDITIONS = ['source', 'medium', 'campaign'] as const

/** One row per rule, in their order. An empty row adds one. */
function ChannelForm(props: PolicyProps): VNode {
  const { channels } = props.policy
  const count = useSignal(Math.max(1, channels.length))
  const problem = useSignal<unknown>(null)
  const save = (_: FormValues<string>, all: FormData) => {
    const column = (name: string) => all.getAll(name).map(String)
    const conditions = CONDITIONS.map(name => [name, column(name)] as const)
    const rules = column('channel').flatMap((channel, row): Rule[] => {
      const given = conditions.flatMap(([name, values]) => {
        const patterns = splitList(values[row] ?? '')
        return patterns.length > 0 ? [[name, patterns]] : []
      })
      if (channel.trim() === '' && given.length === 0) return []
      return [{ channel: channel.trim(), ...Object.fromEntries(given) }]
    })
    return savePolicy(props, { channels: rules })
  }
  const cell = (name: 'channel' | (typeof CONDITIONS)[number], row: number, placeholder: string) => {
    const value = channels[row]?.[name]
    return html`<td data-label=${LABELS[name]}>
      <input
        name=${name} aria-label=${`${LABELS[name]} of rule ${row + 1}`} autocomplete="off" spellcheck="false"
        defaultValue=${Array.isArray(value) ? value.join(', ') : (value ?? '')} placeholder=${row === 0 ? placeholder : ''}
      />
    </td>`
  }
  const add = () => {
    count.value++
  }
  return html`
    <p>
      The UTM parameters and the referrer of a person’s first visit determine the channel. Your rules are checked first, from
      top to bottom, and also apply to past visits. All conditions of a rule must match. Separate patterns with commas;
      ${' '}<code>*</code> stands for any text. To remove a rule, empty its row.
      ${' '}<a href=${link('channels')}>See the channels</a>.
    </p>
    ${h(
      Form<string>,
      {
        ...{ submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
        aside: h(ActionButton, { label: 'Add a rule', needs: 'admin', run: add, problem }),
      },
      html`<div class="scroller" role="region" aria-label="Channel rules" tabindex="0">
        <table class="inputs stacking">
          <caption class="unseen">Channel rules</caption>
          <thead><tr>${['channel', ...CONDITIONS].map(name => html`<th scope="col">${LABELS[name as keyof typeof LABELS]}</th>`)}</tr></thead>
          <tbody>
            ${Array.from({ length: count.value }, (_, row) => html`<tr key=${row}>${cell('channel', row, 'partners')}${cell('source', row, '*.partner.com')}${cell('medium', row, 'cpc')}${cell('campaign', row, 'brand*')}</tr>`)}
          </tbody>
        </table>
      </div>`,
      h(ProblemArea, { problem }),
    )}
  `
}

const LABELS = { channel: 'Channel', source: 'Source', medium: 'Medium', campaign: 'Campaign' }

/** One line per group: Business: Team, Scale */
function PlanGroupForm(props: PolicyProps): VNode {
  const { plan_groups: groups } = props.policy
  const save = ({ plan_groups: lines }: FormValues<'plan_groups'>) => {
    const given = lines.split('\n').filter(line => line.trim() !== '')
    return savePolicy(props, { plan_groups: Object.fromEntries(given.map(readGroup)) })
  }
  const text = Object.entries(groups)
    .map(([name, plans]) => `${name}: ${plans.join(', ')}`)
    .join('\n')
  return h(
    Form<'plan_groups'>,
    { key: text, submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
    h(TextArea, {
      ...{
        id: 'plan_groups',
        label: 'Groups of plans',
        value: text,
        rows: Math.max(3, Object.keys(groups).length + 1),
      },
      hint: html`Reports of the API can break down MRR by plan group. One line per group. List plans by name, or by the id of their price or product. Example:<br /><code>Business: Team, Scale</code>`,
    }),
  )
}

function readGroup(line: string): [string, string[]] {
  const colon = line.indexOf(':')
  if (colon < 1) throw new Error(`“${line.trim()}” must be a name, a colon and plans: Business: Team, Scale.`)
  return [line.slice(0, colon).trim(), splitList(line.slice(colon + 1))]
}
