import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { alerts, destinations, digests } from '../api/admin.ts'
import type {
  Alert,
  AlertRules,
  AlertValue,
  Destination,
  DestinationTest,
  Digest,
  List,
  RuleName,
  Weekday,
} from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation, showDialog } from '../components/dialog.ts'
import { ActionButton, Form, type FormValues, SelectField, SelectFilter, TextField } from '../components/form.ts'
import { useLiveData } from '../components/live-data.ts'
import { Badge, EmptyState, type Outcome, OutcomeArea, ProblemArea } from '../components/notice.ts'
import { Page, Section, TextView } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Ago, Time } from '../components/time.ts'
import { NONE, number, percent, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { DestinationState } from './destinations.ts'

const STATES = [
  ['raised', 'Active'],
  ['all', 'Last 90 days'],
] as const

/** `recipients`: the destinations that receive alerts or digests. */
type Shown = {
  list: List<Alert>
  rules: AlertRules
  values: AlertValue[]
  recipients: Destination[]
  digest: Digest
}

const readState = (query: URLSearchParams) => (query.get('state') === 'all' ? 'all' : 'raised')
const filterOf = (query: URLSearchParams) => ({ tenant: tenant.peek() ?? '', state: readState(query) }) as const

/** Alerts and the thresholds of their rules. */
export const alertsPage = definePage(
  'alerts',
  async ({ route: { query }, signal }): Promise<Shown> => {
    const id = tenant.peek() ?? ''
    const [list, rules, values, all, digest] = await Promise.all([
      alerts.list(filterOf(query), signal),
      alerts.rules(id, signal),
      alerts.values(id, signal),
      destinations.list(id, signal),
      digests.find(id, signal),
    ])
    const recipients = all.results.filter(({ what }) => what.includes('alerts') || what.includes('digests'))
    return { list, rules, values: values.results, recipients, digest }
  },
  ({ data, route: { query }, refresh }) => {
    const { list, rules, values, recipients, digest } = useLiveData(data, {
      next: async (before, signal) => ({ ...before, list: await alerts.list(filterOf(query), signal) }),
    })
    return h(
      Page,
      {
        title: 'Alerts',
        lead: 'Kontor checks the rules every minute. An alert is raised if a value reaches its threshold in two consecutive checks, and resolved after three consecutive checks below 80% of the threshold.',
      },
      h(SelectFilter, {
        ...{ id: 'state', label: 'Alerts', options: STATES, value: readState(query) },
        onChange: state => go(link('alerts', { state: state === 'all' ? state : null })),
      }),
      list.results.length === 0
        ? h(EmptyState, {
            title: readState(query) === 'all' ? 'No alerts in the last 90 days.' : 'No active alerts.',
            text: recipients.length === 0 ? 'Add a recipient below to receive alerts by e-mail or chat.' : undefined,
          })
        : h(Table<Alert>, {
            ...{ caption: 'Alerts', columns, rows: list.results, rowKey: ({ id }) => id },
            csv: { api: 'admin', path: '/alerts', query: filterOf(query), name: 'alerts' },
          }),
      h(Section, { title: 'Rules' }, h(RuleForm, { rules, values, refresh })),
      h(Section, { title: 'Recipients' }, h(Recipients, { recipients, canEmail: digest.email, refresh })),
      h(Section, { title: 'Weekly digest' }, h(DigestForm, { digest, refresh })),
    )
  },
)

const columns: Column<Alert>[] = [
  { label: 'Alert', cell: alertCell, kind: 'text' },
  {
    label: 'Status',
    cell: ({ state }) => h(Badge, { text: state, tone: state === 'raised' ? 'bad' : 'good' }),
  },
  { label: 'Raised', cell: ({ raised_at }) => h(Ago, { at: raised_at }) },
  {
    label: 'Value',
    cell: ({ rule, value }) => formatValue(rule, value),
    kind: 'number',
  },
  {
    label: 'Threshold',
    cell: ({ rule, threshold }) => formatValue(rule, threshold),
    kind: 'number',
  },
  {
    label: 'Resolved',
    cell: ({ resolved_at: at }) => (at === null ? NONE : h(Time, { at })),
  },
]

function alertCell({ rule, subject, summary }: Alert): ComponentChildren {
  const href = rule === 'source_silent' && subject ? link('source', { id: subject }) : RULES[rule].href
  return html`<a href=${href}>${summary}</a>`
}

type RuleProps = { rules: AlertRules; values: AlertValue[]; refresh(): Promise<void> }

function RuleForm({ rules, values, refresh }: RuleProps): VNode {
  const problem = useSignal<unknown>(null)
  const outcome = useSignal<Outcome | null>(null)
  const set = async (change: Parameters<typeof alerts.setRules>[1], message: string) => {
    await alerts.setRules(tenant.peek() ?? '', change)
    toast(message)
    await refresh()
  }
  const save = async (typed: FormValues<RuleName>, all: FormData) => {
    const on = all.getAll('on')
    const given = RULE_NAMES.map(rule => [rule, on.includes(rule) ? parseThreshold(rule, typed[rule]) : null] as const)
    // Unchanged rules are not sent, so that they keep following the defaults.
    const changed = given.filter(([rule, value]) => value !== rules[rule])
    if (changed.length > 0) await set(Object.fromEntries(changed), 'Saved')
  }
  const reset = () => set(Object.fromEntries(RULE_NAMES.map(rule => [rule, 'default'])), 'Reset to defaults')
  const test = async (rule: RuleName) => {
    outcome.value = describeTests((await alerts.test(tenant.peek() ?? '', rule)).results)
    toast(outcome.value.text)
  }
  return html`
    ${h(ProblemArea, { problem })}
    ${h(OutcomeArea, { outcome })}
    ${h(
      Form<RuleName>,
      {
        ...{ key: JSON.stringify(rules), submit: 'Save', needs: 'admin', layout: 'filter', run: save },
        aside: h(ActionButton, { label: 'Reset to defaults', needs: 'admin', run: reset, problem, kind: 'quiet' }),
      },
      html`<div class="rules">
        ${RULE_NAMES.map(rule => {
          const { label, before, after, means } = RULES[rule]
          const threshold = rules[rule]
          return html`
            <div class="rule" title=${means}>
              <label>
                <input
                  type="checkbox" name="on" value=${rule} defaultChecked=${threshold !== null}
                  aria-label=${`Alert when ${before} … ${after}`}
                />
                <span>Alert when ${before}</span>
                <input
                  name=${rule} aria-label=${label} defaultValue=${toInput(rule, threshold)} placeholder="off"
                  inputmode="decimal" autocomplete="off"
                />
                <span>${after}</span>
              </label>
              <span>${currentValue(rule, values, threshold)}</span>
              ${h(ActionButton, { label: 'Send test', needs: 'operator', run: () => test(rule), problem, kind: 'link' })}
            </div>
          `
        })}
      </div>`,
    )}
  `
}

/** The highest value of a rule: of all its sources or currencies, the one that raises an alert first. */
function currentValue(rule: RuleName, values: AlertValue[], threshold: number | null): ComponentChildren {
  const own = values.filter(value => value.rule === rule)
  const highest = own.reduce<AlertValue | null>(
    (most, value) => (most && most.value >= value.value ? most : value),
    null,
  )
  const value = highest?.value ?? 0
  const shown = `Now: ${rule === 'mrr_drop' ? describeDrop(value, highest?.subject ?? null) : formatValue(rule, value)}`
  return threshold !== null && value >= threshold
    ? h(Badge, { text: shown, tone: 'bad' })
    : html`<span class="faint">${shown}</span>`
}

function describeDrop(share: number, code: string | null): string {
  return share > 0 ? `down ${percent(share)}${code ? ` (${code})` : ''}` : 'no decrease'
}

function describeTests(tests: DestinationTest[]): Outcome {
  const failed = tests.find(({ ok }) => !ok)
  if (tests.length === 0) return { text: 'No one receives this alert. Add a recipient below.', isBad: true }
  if (failed) return { text: `Not delivered to ${addressOf(failed)}: ${failed.error ?? 'no response'}`, isBad: true }
  return { text: `Test message delivered to ${tests.map(addressOf).join(', ')}.`, isBad: false }
}

const addressOf = ({ url }: { url: string }) => url.replace(/^mailto:/, '')

type RecipientProps = { recipients: Destination[]; canEmail: boolean; refresh(): Promise<void> }
type RecipientField = 'kind' | 'addresses' | 'alerts'

function Recipients({ recipients, canEmail, refresh }: RecipientProps): VNode {
  const sendTo = useSignal(canEmail ? 'email' : 'slack')
  const isEmail = sendTo.value === 'email'
  const problem = useSignal<unknown>(null)
  const outcome = useSignal<Outcome | null>(null)
  const test = async ({ id }: Destination) => {
    outcome.value = describeTests([await destinations.test(id)])
    toast(outcome.value.text)
    await refresh()
  }
  const remove = async ({ id, url }: Destination) => {
    const title = `Remove ${addressOf({ url })}?`
    if (!(await askConfirmation({ title, text: 'Its pending messages are deleted too.', yes: 'Remove' }))) return
    await destinations.remove(id)
    await refresh()
  }
  const add = async ({ kind, addresses, alerts: chosen }: FormValues<RecipientField>, all: FormData) => {
    const what = [...(chosen === 'none' ? [] : ['alerts' as const]), ...(all.has('digest') ? ['digests' as const] : [])]
    if (what.length === 0) throw new Error('Choose alerts, the weekly digest, or both.')
    const given = addresses.split(/[\s,;]+/).filter(Boolean)
    if (given.length === 0)
      throw new Error(kind === 'email' ? 'Enter an e-mail address.' : 'Enter the URL of the webhook.')
    const alert_rules = chosen === 'all' || chosen === 'none' ? [] : [chosen as RuleName]
    for (const address of given) {
      const url = kind === 'email' ? `mailto:${address.replace(/^mailto:/, '')}` : address
      await destinations.create(tenant.peek() ?? '', { type: kind as 'email' | 'slack', url, what, alert_rules })
    }
    toast(given.length === 1 ? 'Recipient added' : 'Recipients added')
    await refresh()
  }
  const recipientColumns: Column<Destination>[] = [
    {
      label: 'Address',
      cell: row => html`<a href=${link('destination', { id: row.id })}>${addressOf(row)}</a>`,
      kind: 'long',
    },
    { label: 'Receives', cell: describeReceived, kind: 'long' },
    { label: 'Status', cell: recipientState, kind: 'long' },
    {
      label: 'Last sent',
      cell: ({ health }) => (health.last_success_at ? h(Ago, { at: health.last_success_at }) : 'never'),
    },
    {
      label: 'Actions',
      cell: row => [
        h(ActionButton, { label: 'Send test', needs: 'operator', run: () => test(row), problem, kind: 'link' }),
        ' ',
        h(ActionButton, { label: 'Remove', needs: 'admin', run: () => remove(row), problem, kind: 'link' }),
      ],
    },
  ]
  return html`
    ${h(ProblemArea, { problem })}
    ${h(OutcomeArea, { outcome })}
    ${
      recipients.length > 0
        ? h(Table<Destination>, {
            ...{ caption: 'Recipients', columns: recipientColumns, rows: recipients, rowKey: ({ id }) => id },
          })
        : html`<p class="faint">No recipients yet. Add one below to receive alerts or the weekly digest.</p>`
    }
    <h3>Add recipients</h3>
    ${isEmail && !canEmail && html`<p class="faint">To send e-mail, set KONTOR_SMTP_URL and KONTOR_SMTP_FROM on the server.</p>`}
    ${h(
      Form<RecipientField>,
      { key: String(recipients.length), submit: 'Add recipient', needs: 'admin', layout: 'filter', run: add },
      h(SelectField, {
        ...{ id: 'kind', label: 'Send to', options: KINDS, value: sendTo.value },
        onChange: chosen => {
          sendTo.value = chosen
        },
      }),
      h(TextField, {
        ...{ id: 'addresses', label: isEmail ? 'E-mail addresses, separated by commas' : 'Webhook URL', size: 36 },
        placeholder: isEmail ? 'ops@example.com, ceo@example.com' : 'https://hooks.slack.com/services/…',
      }),
      h(SelectField, { id: 'alerts', label: 'Which alerts', options: CHOICES }),
      html`<label class="check"><input type="checkbox" name="digest" value="on" />Weekly digest</label>`,
    )}
  `
}

function recipientState(destination: Destination): ComponentChildren {
  const { health, disabled_reason: reason } = destination
  const why = reason ?? (health.failing_since && health.last_error)
  return [h(DestinationState, { destination }), why && html` <span class="faint">${why}</span>`]
}

const KINDS = [
  ['email', 'E-mail'],
  ['slack', 'Slack or compatible'],
] as const

function describeReceived({ what, alert_rules: rules }: Destination): string {
  const received = [
    what.includes('alerts') &&
      (rules.length === 0 ? 'all alerts' : `alerts when ${rules.map(rule => RULES[rule].name).join(' or ')}`),
    what.includes('digests') && 'weekly digest',
  ]
  return received.filter(Boolean).join('; ')
}

const WEEKDAYS: readonly (readonly [Weekday, string])[] = [
  ['monday', 'Monday'],
  ['tuesday', 'Tuesday'],
  ['wednesday', 'Wednesday'],
  ['thursday', 'Thursday'],
  ['friday', 'Friday'],
  ['saturday', 'Saturday'],
  ['sunday', 'Sunday'],
]
/** As in other times of the page. */
const HOURS = Array.from(
  { length: 24 },
  (_, hour) => [String(hour), `${hour % 12 || 12}:00 ${hour < 12 ? 'AM' : 'PM'}`] as const,
)

function DigestForm({ digest, refresh }: { digest: Digest; refresh(): Promise<void> }): VNode {
  const problem = useSignal<unknown>(null)
  const save = async ({ weekday, hour }: FormValues<'weekday' | 'hour'>) => {
    await digests.set(tenant.peek() ?? '', { weekday: weekday as Weekday, hour: Number(hour) })
    toast('Saved')
    await refresh()
  }
  const preview = async () => {
    const { subject, text } = await digests.preview(tenant.peek() ?? '')
    showDialog(subject, h(TextView, { text, label: 'Digest' }))
  }
  const { recipients, weekday, hour } = digest
  return html`
    <p>Once a week: MRR, its movements, the largest new and lost accounts, and what needs attention.</p>
    <p class="faint">
      ${
        recipients.length === 0
          ? 'No one receives the digest. Add a recipient above with “Weekly digest”.'
          : html`Next digest: ${h(Time, { at: digest.next_at })}, to ${recipients.map(addressOf).join(', ')}.`
      }
    </p>
    ${h(ProblemArea, { problem })}
    ${h(
      Form<'weekday' | 'hour'>,
      {
        ...{ key: `${weekday} ${hour}`, submit: 'Set schedule', needs: 'admin', layout: 'filter', run: save },
        aside: h(ActionButton, { label: 'Preview', run: preview, problem, kind: 'quiet' }),
      },
      h(SelectField, { id: 'weekday', label: 'Send every', options: WEEKDAYS, value: weekday }),
      h(SelectField, { id: 'hour', label: `At (${digest.time_zone})`, options: HOURS, value: String(hour) }),
    )}
  `
}

type RuleText = {
  name: string
  /** Names the field of the threshold. */
  label: string
  /** The sentence around the threshold: "Alert when {before} {threshold} {after}". */
  before: string
  after: string
  means: string
  unit: 'seconds' | 'share' | 'count' | 'times'
  /** The page that shows the cause. */
  href: string
}

const RULES: Record<RuleName, RuleText> = {
  mrr_drop: {
    name: 'MRR falls',
    label: 'Lost MRR in %',
    before: 'MRR falls by at least',
    after: '% within seven days',
    means: 'Compared with the MRR of seven days ago, per currency.',
    unit: 'share',
    href: link('movements'),
  },
  source_silent: {
    name: 'a source sends nothing',
    label: 'Silent source, multiple of its longest gap',
    before: 'a source has sent nothing for',
    after: 'times its longest gap of the past week',
    means:
      'Time since the last event of a source, divided by the longest gap between its events in the previous week. A gap shorter than ten minutes counts as ten minutes.',
    unit: 'times',
    href: link('sources'),
  },
  refused_share: {
    name: 'webhook requests are rejected',
    label: 'Rejected webhooks in %',
    before: 'at least',
    after: '% of the webhook requests of an hour are rejected',
    means:
      'Share of webhook requests that were rejected in the last hour. Requests with invalid credentials and 429 responses do not count. Applies only with ten or more rejections.',
    unit: 'share',
    href: link('issues'),
  },
  dead_letters: {
    name: 'there are dead letters',
    label: 'Dead letters',
    before: 'there are at least',
    after: 'dead letters',
    means: 'Number of open dead letters: neither replayed nor resolved.',
    unit: 'count',
    href: link('deadLetters'),
  },
  lag: {
    name: 'processing is behind',
    label: 'Lag in seconds',
    before: 'processing is at least',
    after: 'seconds behind',
    means: 'How long the oldest accepted request has been waiting to be processed.',
    unit: 'seconds',
    href: link('overview'),
  },
}

const RULE_NAMES = Object.keys(RULES) as RuleName[]

const CHOICES = [
  ['all', 'All alerts'],
  ...RULE_NAMES.map(rule => [rule, `Only when ${RULES[rule].name}`] as const),
  ['none', 'No alerts (digest only)'],
] as const

function formatValue(rule: RuleName, value: number): string {
  const { unit } = RULES[rule]
  if (unit === 'share') return percent(value)
  if (unit === 'seconds') return plural(Math.round(value), 'second')
  return unit === 'times' ? `${number(Math.round(value * 10) / 10)} times` : number(value)
}

/** Shares are entered in %. `parseThreshold` is the inverse. */
function toInput(rule: RuleName, value: number | null): string {
  if (value === null) return ''
  return String(RULES[rule].unit === 'share' ? Number((value * 100).toPrecision(12)) : value)
}

function parseThreshold(rule: RuleName, typed: string): number | null {
  const number = typed.trim()
  const text = number.endsWith('%') ? number.slice(0, -1).trim() : number
  if (text === '') return null
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value)))
    throw new Error(`${RULES[rule].label}: enter a number above 0, or leave it empty to turn the rule off.`)
  if (RULES[rule].unit === 'share' && value > 100) throw new Error(`${RULES[rule].label}: enter at most 100%.`)
  return RULES[rule].unit === 'share' ? Number((value / 100).toPrecision(12)) : value
}
