import type pg from 'pg'
import { faultOfUrl, PRIVATE } from '../domain/destinations/addresses.ts'
import { messageId } from '../domain/destinations/destinations.ts'
import { newEntryId } from '../domain/ids.ts'
import { hintOf, newPublicId, newSigningSecret } from '../domain/tenants/keys.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { HOUR_MS, parseTimestamp } from '../domain/time.ts'
import type { ValidationError } from '../domain/validation-error.ts'
import { leadsToPrivate, openSender } from '../pipeline/deliveries/send.ts'
import { bodyOf, headersOf, targetOf } from '../pipeline/deliveries/target.ts'
import { databaseNow } from '../postgres/clock.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import {
  type Destination,
  deleteDestination,
  findDestination,
  insertDestination,
  listDestinations,
  lockDestination,
  stateOf,
  updateDestination,
} from '../store/destinations/destinations.ts'
import { queueAgain } from '../store/destinations/outbox.ts'
import { type Attempt, type AttemptPage, listAttempts } from '../store/destinations/queue.ts'
import { type Actor, SYSTEM, sees } from './actor.ts'
import { recordChange } from './audit.ts'
import { DESTINATION_FIELDS, type DestinationSettings } from './destination-settings.ts'
import { AdminError, notFound, refuse } from './error.ts'
import { DEFAULT_OVERLAP_HOURS, faultsOfOverlap } from './overlap.ts'
import type { Secrets } from './secrets.ts'
import { faultsOfSettings } from './sources/settings.ts'
import { tenantNamed } from './tenants.ts'
import type {
  CreatedDestination,
  DeliveryView,
  DestinationTest,
  DestinationView,
} from './views/destinations.ts'

type Unchecked = Record<string, unknown>
type Deps = { pool: pg.Pool; secrets: Secrets; actor: Actor; allowPrivate: boolean }

// Every event of the tenant is queued for each of them, in the transaction in which it takes effect.
const MAX_DESTINATIONS = 100

export type DestinationAdmin = ReturnType<typeof destinationAdmin>

export function destinationAdmin(deps: Deps) {
  const { pool, secrets, actor } = deps

  async function own(id: string): Promise<Destination> {
    const destination = await findDestination(pool, id)
    if (destination === null || !sees(actor, destination.tenantId)) throw notFound('destination', id)
    return destination
  }

  async function change(
    id: string,
    verb: string,
    decide: (destination: Destination) => Partial<Destination>,
  ): Promise<DestinationView> {
    const changed = await inTransaction(pool, async tx => {
      const destination = await lockDestination(tx, id)
      if (destination === null || !sees(actor, destination.tenantId)) throw notFound('destination', id)
      const changed = await updateDestination(tx, destination, decide(destination))
      const [before, after] = [destination, changed].map(state => audited(state, secrets))
      const { tenantId } = destination
      await recordChange(tx, actor, { action: `destination.${verb}`, target: id, tenantId, before, after })
      return changed
    })
    return view(pool, changed, secrets)
  }

  return {
    async create({ tenant, ...input }: Unchecked & { tenant: string }): Promise<CreatedDestination> {
      refuse([...(await faultsOf(input, deps)), ...missing(tenant, input)])
      const { id: tenantId } = await tenantNamed(pool, actor, tenant)
      return inTransaction(pool, tx => makeDestination(tx, deps, tenantId, input as DestinationSettings))
    },
    async list(tenant: string): Promise<DestinationView[]> {
      const found = await listDestinations(pool, (await tenantNamed(pool, actor, tenant)).id)
      return Promise.all(found.map(destination => view(pool, destination, secrets)))
    },
    async show(id: string): Promise<DestinationView> {
      return view(pool, await own(id), secrets)
    },
    async update(id: string, input: Unchecked): Promise<DestinationView> {
      refuse(await faultsOf(input, deps))
      const { event_types: eventTypes, headers, ...settings } = input as DestinationSettings
      return change(id, 'update', destination => ({
        ...Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)),
        eventTypes: eventTypes ?? destination.eventTypes,
        headers: headers === undefined ? destination.headers : sealedHeaders(headers, secrets),
      }))
    },
    setEnabled: (id: string, enabled: boolean): Promise<DestinationView> =>
      change(id, enabled ? 'enable' : 'disable', () => ({ enabled, disabledReason: null })),
    /** The one before goes on signing during the overlap. */
    async rotate(
      id: string,
      { overlapHours = DEFAULT_OVERLAP_HOURS }: { overlapHours?: number | undefined },
    ): Promise<DestinationView & { secret: string }> {
      refuse(faultsOfOverlap(overlapHours))
      const secret = newSigningSecret()
      const until = new Date((await databaseNow(pool)).getTime() + overlapHours * HOUR_MS).toISOString()
      const rotated = await change(id, 'rotate', destination => ({
        secrets: [
          { sealed: secrets.seal(secret), hint: hintOf(secret), expires_at: null },
          ...(overlapHours > 0 ? [{ ...destination.secrets[0]!, expires_at: until }] : []),
        ],
      }))
      return { ...rotated, secret }
    },
    async delete(id: string): Promise<void> {
      await inTransaction(pool, async tx => {
        const destination = await lockDestination(tx, id)
        if (destination === null || !sees(actor, destination.tenantId)) throw notFound('destination', id)
        await deleteDestination(tx, id)
        const { tenantId } = destination
        const before = audited(destination, secrets)
        await recordChange(tx, actor, { action: 'destination.delete', target: id, tenantId, before })
      })
    },
    /** Sends a message now, and tells what came of it. It is not repeated, and not in the log of deliveries. */
    async test(id: string): Promise<DestinationTest> {
      const destination = await own(id)
      const at = await databaseNow(pool)
      const message = { id: newEntryId(at.getTime()), at, type: 'kontor.test' }
      const data = JSON.stringify({ message: 'A test of this destination.', destination: id })
      const sender = openSender({ ...deps, now: () => at })
      try {
        const body = bodyOf({ ...message, data })
        const target = targetOf(destination, secrets, at)
        const sent = await sender.send(target, { id: messageId(message.id), body })
        return {
          ...{ ok: sent.isDelivered, message_id: messageId(message.id), url: destination.url },
          ...{
            status: sent.status,
            error: sent.error,
            response: sent.response,
            duration_ms: sent.durationMs,
          },
        }
      } finally {
        sender.close()
      }
    },
    async deliveries(id: string, page: AttemptPage): Promise<DeliveryView[]> {
      const { tenantId } = await own(id)
      return (await listAttempts(pool, tenantId, id, page)).map(deliveryView)
    },
    /** Everything since then is sent again, delivered or not, under the ids that it had. */
    async replay(id: string, since: string): Promise<{ id: string; since: string; queued: number }> {
      const from = parseTimestamp(since)
      if (from === null) refuse([{ pointer: '/since', message: 'must be a time like 2026-01-31T09:30:00Z' }])
      const destination = await own(id)
      if (!destination.enabled)
        throw new AdminError('conflict', 'destination_disabled', 'It is disabled: enable it before a replay.')
      let queued = 0
      let after: { at: string; id: string } | null = null
      for (;;) {
        const portion = await queueAgain(pool, destination, { since: from!, after })
        if (portion === null) break
        queued += portion.queued
        after = portion.last
      }
      const result = { id, since: from!.toISOString(), queued }
      const { tenantId } = destination
      const { since: _, ...facts } = result
      await recordChange(pool, actor, {
        ...{ action: 'destination.replay', target: id, tenantId },
        after: { ...facts, since: result.since },
      })
      return result
    },
  }
}

/** When Kontor itself disables it: in its own name. */
export async function disableFailing(pool: pg.Pool, id: string, reason: string): Promise<void> {
  await inTransaction(pool, tx => disableDestination(tx, SYSTEM, id, reason))
}

export async function disableDestination(
  tx: Db,
  actor: Actor,
  id: string,
  reason: string | null,
): Promise<void> {
  const destination = await lockDestination(tx, id)
  if (destination === null || !destination.enabled) return
  await updateDestination(tx, destination, { enabled: false, disabledReason: reason })
  await recordChange(tx, actor, {
    ...{ action: 'destination.disable', target: id, tenantId: destination.tenantId },
    before: { enabled: true, disabled_reason: null },
    after: { enabled: false, disabled_reason: reason },
  })
}

async function makeDestination(
  tx: Db,
  { actor, secrets }: Deps,
  tenantId: number,
  input: DestinationSettings,
): Promise<CreatedDestination> {
  if ((await listDestinations(tx, tenantId)).length >= MAX_DESTINATIONS)
    throw new AdminError(
      'conflict',
      'too_many_destinations',
      `A tenant may have ${MAX_DESTINATIONS} destinations: delete one that is not needed.`,
    )
  const secret = newSigningSecret()
  const destination = await insertDestination(tx, {
    id: newPublicId('dst'),
    tenantId,
    name: input.name ?? new URL(input.url!).hostname,
    url: input.url!,
    what: input.what ?? ['events', 'conversions'],
    eventTypes: input.event_types ?? [],
    enabled: input.enabled ?? true,
    secrets: [{ sealed: secrets.seal(secret), hint: hintOf(secret), expires_at: null }],
    headers: sealedHeaders(input.headers ?? {}, secrets),
    createdBy: actor.name,
  })
  const after = audited(destination, secrets)
  await recordChange(tx, actor, { action: 'destination.create', target: destination.id, tenantId, after })
  return { ...(await view(tx, destination, secrets)), secret }
}

function sealedHeaders(headers: Record<string, string>, secrets: Secrets): string | null {
  return Object.keys(headers).length === 0 ? null : secrets.seal(JSON.stringify(headers))
}

function missing(tenant: unknown, { url }: Unchecked): ValidationError[] {
  const faults: ValidationError[] = []
  if (typeof tenant !== 'string' || tenant === '')
    faults.push({ pointer: '/tenant', message: 'is required: the id or the name of a tenant' })
  if (url === undefined) faults.push({ pointer: '/url', message: 'is required' })
  return faults
}

async function faultsOf(input: Unchecked, { allowPrivate }: Deps): Promise<ValidationError[]> {
  const faults = faultsOfSettings(input, DESTINATION_FIELDS)
  const { url } = input
  if (typeof url !== 'string' || faults.some(({ pointer }) => pointer === '/url')) return faults
  const fault = faultOfUrl(url, { allowPrivate })
  // Asked again for every connection: a name may lead elsewhere by then.
  const isPrivate = fault === null && !allowPrivate && (await leadsToPrivate(new URL(url).hostname))
  if (fault !== null || isPrivate) faults.push({ pointer: '/url', message: `must ${fault ?? PRIVATE}` })
  return faults
}

/** Their names: nobody can tell by a name whether its value is a secret. */
function shownHeaders(destination: Destination, secrets: Secrets): Record<string, string> {
  return Object.fromEntries(Object.keys(headersOf(destination, secrets)).map(name => [name, '…']))
}

/** What the audit keeps. */
function audited(destination: Destination, secrets: Secrets) {
  const { id, tenantId, name, url, what, enabled } = destination
  return {
    ...{
      id,
      tenant: publicTenantId(tenantId),
      name,
      url,
      what,
      event_types: destination.eventTypes,
      enabled,
    },
    disabled_reason: destination.disabledReason,
    headers: shownHeaders(destination, secrets),
    secrets: destination.secrets.map(({ hint, expires_at }) => ({ hint, expires_at })),
  }
}

async function view(db: Db, destination: Destination, secrets: Secrets): Promise<DestinationView> {
  const state = await stateOf(db, destination.id)
  const time = (at: Date | null) => at?.toISOString() ?? null
  return {
    ...audited(destination, secrets),
    health: {
      status: !destination.enabled ? 'disabled' : state.failingSince ? 'failing' : 'ok',
      pending: state.pending,
      failing_since: time(state.failingSince),
      last_attempt_at: time(state.lastAttemptAt),
      last_success_at: time(state.lastSuccessAt),
      last_status: state.lastStatus,
      last_error: state.lastError,
    },
    created_by: destination.createdBy,
    created_at: destination.createdAt.toISOString(),
    updated_at: destination.updatedAt.toISOString(),
  }
}

function deliveryView(attempt: Attempt): DeliveryView {
  return {
    id: messageId(attempt.id),
    type: attempt.type,
    outcome: attempt.outcome,
    attempt: attempt.attempt,
    attempted_at: attempt.attemptedAt.toISOString(),
    status: attempt.status,
    error: attempt.error,
    response: attempt.response,
    duration_ms: attempt.durationMs,
    next_attempt_at: attempt.nextAttemptAt?.toISOString() ?? null,
  }
}
