import type pg from 'pg'
import { MAX_EVENT_TYPE_LENGTH } from '../domain/events/types.ts'
import { Nullable, Timestamp } from '../domain/shapes.ts'
import { IP_MODES, type IpMode, isIpMode } from '../domain/tenants/ip-addresses.ts'
import {
  parseEventsFloor,
  parseTenantId,
  publicTenantId,
  shownEventsFloor,
  type Tenant,
} from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { ValidationError } from '../domain/validation-error.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { createTenant, listTenants, lockTenant, updateTenant } from '../store/tenants/tenants.ts'
import { type Actor, canSee, requireAllTenants, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, notFound, throwIfInvalid } from './error.ts'
import { isPrintable } from './settings.ts'

/** The input of the admin API. */
type TenantChange = { conversion_types?: string[] | null; events_floor?: string | null; ip_addresses?: string }

export function tenantAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create({ name }: { name: string }): Promise<TenantView> {
      requireAllTenants(actor)
      throwIfInvalid(validateName(name))
      return inTransaction(pool, async tx => {
        const tenant = await insertTenantRecorded(tx, actor, name.trim())
        if (tenant === null)
          throw new AdminError('conflict', 'tenant_exists', `A tenant named ${JSON.stringify(name)} already exists.`)
        return tenantView(tenant)
      })
    },
    async list(): Promise<TenantView[]> {
      return (await listTenants(pool)).filter(({ id }) => canSee(actor, id)).map(tenantView)
    },
    async show(idOrName: string): Promise<TenantView> {
      return tenantView(await requireTenant(pool, actor, idOrName))
    },
    /** Records that the actor exports a table, and returns the id of the tenant. */
    async openExport(idOrName: string, after: { table: string; format: string }): Promise<number> {
      const { id } = await requireTenant(pool, actor, idOrName)
      await recordChange(pool, actor, { action: 'tenant.export', target: publicTenantId(id), tenantId: id, after })
      return id
    },
    /** Absent fields stay unchanged; null restores the default. */
    async update(idOrName: string, change: TenantChange): Promise<TenantView> {
      throwIfInvalid([
        ...validateConversionTypes(change.conversion_types ?? []),
        ...validateEventsFloor(change.events_floor ?? 'off'),
        ...validateIpMode(change.ip_addresses ?? 'keep'),
      ])
      const { id } = await requireTenant(pool, actor, idOrName)
      return inTransaction(pool, async tx => {
        const tenant = await lockTenant(tx, id)
        if (tenant === null) throw notFound('tenant', idOrName)
        const changed = { ...tenant, ...toTenantChange(change) }
        await updateTenant(tx, changed)
        const before = tenantView(tenant)
        const after = tenantView(changed)
        await recordChange(tx, actor, {
          action: 'tenant.update',
          target: after.id,
          tenantId: id,
          before,
          after,
        })
        return after
      })
    },
  }
}

/** Returns null if the name is taken. */
export async function insertTenantRecorded(tx: Db, actor: Actor, name: string): Promise<Tenant | null> {
  const tenant = await createTenant(tx, name)
  if (tenant === null) return null
  const after = tenantView(tenant)
  await recordChange(tx, actor, { action: 'tenant.create', target: after.id, tenantId: tenant.id, after })
  return tenant
}

const MAX_TENANT_NAME = 100

function validateName(name: string): ValidationError[] {
  const trimmed = name.trim()
  const pointer = '/name'
  if (trimmed === '' || trimmed.length > MAX_TENANT_NAME || !isPrintable(trimmed))
    return [{ pointer, message: `must have 1 to ${MAX_TENANT_NAME} printable characters` }]
  // The name could be mistaken for the id of another tenant.
  if (parseTenantId(trimmed) !== null) return [{ pointer, message: 'must not look like a tenant id' }]
  return []
}

function validateConversionTypes(types: string[]): ValidationError[] {
  return types.flatMap((type, index) =>
    type === '' || type.length > MAX_EVENT_TYPE_LENGTH || !isPrintable(type)
      ? [
          {
            pointer: `/conversion_types/${index}`,
            message: `must have 1 to ${MAX_EVENT_TYPE_LENGTH} printable characters`,
          },
        ]
      : [],
  )
}

function validateEventsFloor(floor: string): ValidationError[] {
  return parseEventsFloor(floor) === undefined
    ? [{ pointer: '/events_floor', message: 'must be 1d to 36500d, or off' }]
    : []
}

function validateIpMode(mode: string): ValidationError[] {
  return isIpMode(mode) ? [] : [{ pointer: '/ip_addresses', message: 'must be keep, truncate or drop' }]
}

function toTenantChange({
  conversion_types: types,
  events_floor: floor,
  ip_addresses: mode,
}: TenantChange): Partial<Tenant> {
  return {
    ...(types !== undefined && { conversionTypes: types && [...new Set(types)] }),
    ...(floor !== undefined && { eventsFloorDays: floor === null ? null : parseEventsFloor(floor)! }),
    ...(mode !== undefined && { ipAddresses: mode as IpMode }),
  }
}

export function tenantView(tenant: Tenant): TenantView {
  return {
    id: publicTenantId(tenant.id),
    name: tenant.name,
    conversion_types: tenant.conversionTypes,
    events_floor: tenant.eventsFloorDays === null ? null : shownEventsFloor(tenant.eventsFloorDays),
    ip_addresses: tenant.ipAddresses,
    created_at: tenant.createdAt.toISOString(),
  }
}

export const ConversionTypes = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH }), {
    maxItems: 1000,
    description: 'Event types that count as conversions; null: the default list',
  }),
)

export const EventsFloor = Nullable(
  Type.String({
    maxLength: 6,
    description:
      'Maximum age of events sent with a public tracking key: days (`3650d`) or `off`; null: the value of `KONTOR_EVENTS_FLOOR`',
  }),
)

export const IpAddresses = Type.Enum([...IP_MODES], {
  description:
    'How IP addresses of events are stored: unchanged, truncated to their network (IPv4 /24, IPv6 /48), or not at all. Applied before anything is written',
})

export const TenantView = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    conversion_types: ConversionTypes,
    events_floor: EventsFloor,
    ip_addresses: IpAddresses,
    created_at: Timestamp,
  },
  {
    title: 'Tenant',
    description: 'An isolated customer of the installation',
    examples: [
      {
        id: 'ten_1',
        name: 'acme',
        conversion_types: null,
        events_floor: null,
        ip_addresses: 'keep',
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
)
export type TenantView = Static<typeof TenantView>
