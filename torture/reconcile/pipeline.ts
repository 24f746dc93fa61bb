import { setTimeout as sleep } from 'node:timers/promises'
import type { Deployment } from '../deployment/deployment.ts'
import { type Postgres, query } from '../deployment/postgres.ts'
import type { Admin } from '../deployment/shops.ts'
import type { Outcome } from './outcomes.ts'
import type { Problem } from './problems.ts'

type Remaining = { things: number; words: string }

/**
 * Waits until there is no lag and nothing is parked or deferred. Fails if the backlog does not shrink within the patience time.
 */
export async function settled(deployment: Deployment, admin: Admin, patienceMs: number): Promise<Problem[]> {
  let deadline = Date.now() + patienceMs
  let fewest = Infinity
  for (;;) {
    const waiting = await whatWaits(deployment, admin).catch(error => [unknown((error as Error).message)])
    if (waiting.length === 0) return []
    const things = waiting.reduce((sum, { things }) => sum + things, 0)
    if (things < fewest) deadline = Date.now() + patienceMs
    fewest = Math.min(fewest, things)
    if (Date.now() > deadline) return waiting.map(({ words }) => ({ kind: 'stuck', words, at: null }))
    await sleep(250)
  }
}

const unknown = (words: string): Remaining => ({ things: Infinity, words })

async function whatWaits({ processes, postgres, nats }: Deployment, admin: Admin): Promise<Remaining[]> {
  const metrics = await fetch(`${processes[0]!.opsUrl}/metrics`).then(response => response.text())
  const lags = [...metrics.matchAll(/^kontor_pipeline_lag_entries\{(.*)\} (\d+)$/gm)]
  if (lags.length === 0) return [unknown('the lag metric is missing')]
  if (nats && !lags.some(([, where]) => where!.includes('jetstream/')))
    return [unknown('the lag metric of NATS is missing')]
  const lagging = lags
    .filter(([, , lag]) => lag !== '0')
    .map(([, where, lag]) => ({ things: Number(lag), words: `${lag} entries are unprocessed (${where})` }))
  const { results } = (await admin('overflow')) as { results: { source_config_id: string; events: number }[] }
  const deferred = results
    .filter(({ events }) => events > 0)
    .map(({ source_config_id: source, events }) => ({
      things: events,
      words: `${events} deferred events of ${source} are unprocessed`,
    }))
  const [parked] = await query<{ count: number }>(postgres, 'select count(*)::int from parked_entries')
  const { count } = parked!
  return [...lagging, ...deferred, ...(count > 0 ? [{ things: count, words: `${count} entries are parked` }] : [])]
}

/** Dead letters may contain only invalid items. */
export async function checkDeadLetters(postgres: Postgres, outcomes: Outcome[]): Promise<Problem[]> {
  const letters = await query<{ reason: string; error: string; body: string; received_at: Date }>(
    postgres,
    'select reason, error, body, received_at from dead_letters',
  )
  const invalid = new Set(outcomes.flatMap(({ item }) => (item.invalid ? [item.marker] : [])))
  return letters.flatMap(({ reason, error, body, received_at }) => {
    const markers = [...body.matchAll(/"marker":"([^"]+)"/g)].map(([, marker]) => marker!)
    if (reason === 'rejected' && markers.every(marker => invalid.has(marker))) return []
    const words = `dead letter (${reason}) of ${markers.slice(0, 3).join(', ')}: ${error}`
    return [{ kind: 'unexpected' as const, words, at: received_at.getTime() }]
  })
}
