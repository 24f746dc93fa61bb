import { requireTenant } from '../../admin/actor.ts'
import { AdminError, notFound } from '../../admin/error.ts'
import type { TenantView } from '../../admin/tenants.ts'
import { signedHeaders } from '../../domain/inbound/signing.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { findSource, listSources, type Source } from '../../store/inbound/sources.ts'
import { UsageError } from '../errors.ts'
import { currentUser, type Session, secretsOf } from '../session.ts'
import { type SampleTarget, uuid } from './sample.ts'

/** The path to which samples are posted, and their authentication. */
export type Sender = {
  path: string
  headersFor(body: string): Record<string, string>
  /** Revokes the key that was created for it. */
  close(): Promise<void>
}

type Choice = { tenant?: string; source?: string; token?: string }

export async function openSender(session: Session, target: SampleTarget, choice: Choice): Promise<Sender> {
  return target === 'events' ? eventSender(session, choice) : sourceSender(session, target, choice)
}

async function eventSender(session: Session, choice: Choice): Promise<Sender> {
  const { admin } = session
  const tenant = await tenantOf(session, choice)
  const expires_at = new Date(Date.now() + HOUR_MS).toISOString()
  const { id, key } = await admin.keys.create({
    tenant: tenant.id,
    kind: 'tracking',
    expires_at,
  })
  return {
    path: '/v1/track',
    headersFor: () => ({ authorization: `Bearer ${key}` }),
    close: async () => {
      await admin.keys.revoke(id, {})
    },
  }
}

async function tenantOf({ admin }: Session, { tenant }: Choice): Promise<TenantView> {
  const tenants = await admin.tenants.list()
  if (tenant === undefined && tenants.length === 1) return tenants[0]!
  if (tenant === undefined && tenants.length === 0)
    throw new UsageError('There is no tenant yet. Create one with kontor start or kontor tenant create.')
  if (tenant === undefined) throw new UsageError('There are several tenants. Choose one with --tenant.')
  const found = tenants.find(({ id, name }) => id === tenant || name === tenant)
  if (!found) throw notFound('tenant', tenant)
  return found
}

async function sourceSender(
  session: Session,
  target: Exclude<SampleTarget, 'events'>,
  choice: Choice,
): Promise<Sender> {
  const source = await sourceFor(session, target, choice)
  const { preset, id } = source
  const { open } = await secretsOf(session.config)
  const secret = source.signingSecrets[0] && open(source.signingSecrets[0].sealed)
  const token = choice.token && { authorization: `Bearer ${choice.token}` }
  const needsToken = secret === undefined || preset === null
  if (needsToken && !token)
    throw new UsageError(
      `The source ${id} requires its token${preset && ', because it has no signing secret'}. Give it with --token tok_…`,
    )
  const { signatureHeader } = session.config
  return {
    path: `/ingest/inbound/${id}`,
    headersFor(body) {
      const signing = { secret: secret ?? '', body, at: new Date(), signatureHeader, id: uuid() }
      const signed = secret === undefined ? {} : signedHeaders(preset, signing)
      if (signed === null)
        throw new UsageError(
          `The signature scheme of ${id} is not supported. Use kontor source test instead.`,
        )
      return { ...token, ...signed }
    },
    close: async () => {},
  }
}

async function sourceFor(
  session: Session,
  target: Exclude<SampleTarget, 'events'>,
  choice: Choice,
): Promise<Source> {
  const { pool } = session
  if (choice.source !== undefined) {
    const source = await findSource(pool, choice.source)
    if (!source) throw notFound('source', choice.source)
    if (choice.tenant !== undefined) {
      const { id, name } = await requireTenant(pool, currentUser(), choice.tenant)
      if (id !== source.tenantId)
        throw new UsageError(`The source ${source.id} does not belong to tenant ${name}. Omit --tenant.`)
    }
    if ('preset' in target && source.preset !== null && source.preset !== target.preset)
      throw new UsageError(
        `The source ${source.id} accepts webhooks of ${source.preset}, but this is a sample of ${target.preset}.`,
      )
    return source
  }
  const tenant = await tenantOf(session, choice)
  const { id } = await requireTenant(pool, currentUser(), tenant.id)
  const fits = (source: Source) =>
    'preset' in target
      ? source.preset === target.preset
      : source.preset === null && source.type === target.type
  const found = (await listSources(pool, id)).filter(source => source.enabled && fits(source))
  if (found.length === 1) return found[0]!
  if (found.length > 1)
    throw new UsageError(
      `There are ${found.length} matching sources (${found.map(source => source.id).join(', ')}). Choose one with --source.`,
    )
  const how =
    'preset' in target
      ? `--type webhook --preset ${target.preset} --signing-secret generate`
      : `--type ${target.type}`
  throw new AdminError(
    'not_found',
    'source_not_found',
    `The tenant ${tenant.name} has no matching source. Create one: kontor source create --tenant ${tenant.name} ${how}`,
  )
}
