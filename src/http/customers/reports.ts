import type pg from 'pg'
import { DEVICES, type FunnelStep, pageSpellings } from '../../domain/customers/funnel.ts'
import { storableText } from '../../domain/json/json.ts'
import { Timestamp } from '../../domain/shapes.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import { DAY_MS } from '../../domain/time.ts'
import { WHOLE_DAY } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import { channelReport } from '../../reports/channels.ts'
import { type Funnel, funnelReport, MAX_FUNNEL_EVENTS } from '../../reports/funnel.ts'
import { inSnapshot } from '../../reports/question.ts'
import { newestPolicy } from '../../store/billing/policies.ts'
import type { App } from '../app.ts'
import { listsAsCsv, timeWindow } from '../paging.ts'
import { groupDigits, problems } from '../problems.ts'
import { untilCurrent } from './list.ts'
import { ChannelBody, FunnelBody } from './schemas.ts'

type Deps = { pool: pg.Pool; now: () => Date }

const DEFAULT_DAYS = 30
const MAX_DAYS = 400

const windowParameters = {
  since: Type.Optional(
    Type.String({ format: 'timestamp', description: `Inclusive start; default: ${DEFAULT_DAYS} days before until` }),
  ),
  until: Type.Optional(Type.String({ format: 'timestamp', description: `Inclusive end; default: now. ${WHOLE_DAY}` })),
}

/** In the tenant's time zone. At most 400 days, because the work grows with the number of visitors. */
function readWindow(
  query: { since?: string; until?: string },
  now: Date,
  timeZone: string,
): { since: Date; until: Date } {
  const given = timeWindow(query, timeZone)
  const until = given.until ?? now
  const since = given.since ?? new Date(until.getTime() - DEFAULT_DAYS * DAY_MS)
  if (since > until) throw problems.invalid([{ pointer: '/since', message: 'must not be after until' }])
  if (until.getTime() - since.getTime() > MAX_DAYS * DAY_MS)
    throw problems.invalid([{ pointer: '/since', message: `must be at most ${MAX_DAYS} days before until` }])
  return { since, until }
}

export function channelRoute(app: App, { pool, now }: Deps): void {
  app.get(
    '/v1/channels',
    {
      config: { scope: 'events:read' },
      onSend: listsAsCsv,
      schema: {
        tags: ['Customers'],
        summary: 'Visitors, trials, customers and revenue by channel',
        description:
          'Each person counts once, in the channel and at the time of their first touch. All columns are about the same people, so they are a funnel. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: Type.Object(windowParameters),
        response: { 200: Type.Object({ since: Timestamp, until: Timestamp, results: Type.Array(ChannelBody) }) },
      },
    },
    async ({ query, caller, headers }) => {
      const { tenantId } = caller
      await untilCurrent(pool, tenantId, headers.prefer)
      const { timeZone, channels } = await newestPolicy(pool, tenantId)
      const window = readWindow(query, now(), timeZone)
      const rows = await inSnapshot(pool, db => channelReport(db, tenantId, window, channels))
      const scopes: readonly Scope[] = caller.key.scopes
      const maySeeSales = scopes.includes('conversions:read')
      const maySeeSubscriptions = scopes.includes('subscriptions:read')
      return {
        since: window.since.toISOString(),
        until: window.until.toISOString(),
        results: rows.map(row => ({
          ...row,
          trials: maySeeSubscriptions ? row.trials : null,
          revenue: maySeeSales ? row.revenue : null,
          mrr: maySeeSubscriptions ? row.mrr : null,
        })),
      }
    },
  )
}

const [MIN_STEPS, MAX_STEPS] = [2, 6]
const MAX_STEP_LENGTH = 200
const MAX_WILDCARDS = 3
const PAGE = 'page:'

export function funnelRoute(app: App, { pool, now }: Deps): void {
  app.get(
    '/v1/funnel',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Customers'],
        summary: 'People who completed several steps in order',
        description: `A person counts in a step if they completed the step after the previous step, and within \`within_days\` of the first step. The first step must be in the window; later steps may be after the window. If a step matches more than ${groupDigits(MAX_FUNNEL_EVENTS)} events, the response is 400: choose a shorter window.`,
        querystring: Type.Object({
          steps: Type.String({
            minLength: 1,
            maxLength: MAX_STEPS * (MAX_STEP_LENGTH + 1),
            description: `${MIN_STEPS} to ${MAX_STEPS} different steps, separated by commas: event types, or page views as ${PAGE}/pricing*`,
            examples: ['page:/pricing*,sign_up,purchase'],
          }),
          ...windowParameters,
          within_days: Type.Integer({
            minimum: 1,
            maximum: 365,
            default: 30,
            description: 'Maximum time from the first step to the last',
          }),
          device: Type.Optional(
            Type.Enum([...DEVICES], {
              description:
                'Only people who did the first step on this kind of device, known from the user agent of the event',
            }),
          ),
          breakdown: Type.Optional(
            Type.Enum(['channel', 'source'], {
              description: 'Also counts by the channel or the source of the first touch',
            }),
          ),
        }),
        response: { 200: FunnelBody },
      },
    },
    async ({ query, caller }) => {
      const { tenantId } = caller
      const { names, steps } = readSteps(query.steps)
      const { timeZone, channels: rules } = await newestPolicy(pool, tenantId)
      const window = readWindow(query, now(), timeZone)
      const question = { steps, ...window, withinDays: query.within_days, device: query.device ?? null }
      const breakdown = query.breakdown === undefined ? null : { by: query.breakdown as 'channel' | 'source', rules }
      const funnel = await funnelReport(pool, tenantId, question, breakdown)
      if (funnel === null)
        throw problems.invalid([
          {
            pointer: '/since',
            message: `must be later: a step matches more than ${MAX_FUNNEL_EVENTS} events between since and until`,
          },
        ])
      return {
        since: window.since.toISOString(),
        until: window.until.toISOString(),
        within_days: query.within_days,
        ...funnelBody(names, funnel),
      }
    },
  )
}

function readSteps(text: string): { names: string[]; steps: FunnelStep[] } {
  const names = text.split(',').map(name => storableText(name.trim()))
  const invalid = (message: string) => problems.invalid([{ pointer: '/steps', message }])
  if (names.length < MIN_STEPS || names.length > MAX_STEPS)
    throw invalid(`must have ${MIN_STEPS} to ${MAX_STEPS} steps, separated by commas`)
  if (new Set(names).size < names.length) throw invalid('must be different from each other')
  const steps = names.map(name => {
    if (name === '' || name.length > MAX_STEP_LENGTH) throw invalid(`must have 1 to ${MAX_STEP_LENGTH} characters each`)
    if (!name.startsWith(PAGE)) return { eventType: name }
    const page = name.slice(PAGE.length)
    if (!page.startsWith('/') && !page.startsWith('*'))
      throw invalid(`must name a page by its path, for example ${PAGE}/pricing*`)
    if (page.split('*').length > MAX_WILDCARDS + 1) throw invalid(`must have at most ${MAX_WILDCARDS} * in a page`)
    return { pages: pageSpellings(page) }
  })
  return { names, steps }
}

function funnelBody(names: string[], { steps, groups }: Funnel): Pick<FunnelBody, 'steps' | 'breakdown'> {
  const share = (people: number, of: number | undefined) => (of ? Math.round((people / of) * 1e4) / 1e4 : null)
  const first = steps[0]!.people
  return {
    steps: steps.map(({ people, medianSeconds }, i) => ({
      name: names[i]!,
      people,
      rate: i === 0 ? null : share(people, steps[i - 1]!.people),
      total_rate: share(people, first),
      median_seconds: i === 0 ? null : medianSeconds,
    })),
    ...(groups && {
      breakdown: groups.map(({ name, people }) => ({
        name,
        steps: people.map((count, i) => ({
          name: names[i]!,
          people: count,
          rate: i === 0 ? null : share(count, people[i - 1]),
        })),
      })),
    }),
  }
}
