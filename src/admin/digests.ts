import type pg from 'pg'
import { type DigestSchedule, lastDue, nextDue, WEEKDAYS } from '../domain/alerts/digest.ts'
import { Timestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { MailSettings } from '../pipeline/deliveries/mail.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import { readSchedule, saveSchedule } from '../store/alerts/digests.ts'
import { appliedPolicy } from '../store/billing/policies.ts'
import { listDestinations } from '../store/destinations/destinations.ts'
import { lockTenant } from '../store/tenants/tenants.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { throwIfInvalid } from './error.ts'
import { validateSettings } from './settings.ts'

/** When the weekly digest of a tenant is sent. Its recipients are the destinations that receive `digests`. */
export function digestAdmin({ pool, actor, mail }: { pool: pg.Pool; actor: Actor; mail: MailSettings | null }) {
  async function toView(tenantId: number, schedule: DigestSchedule): Promise<DigestView> {
    const { timeZone } = await appliedPolicy(pool, tenantId)
    const recipients = (await listDestinations(pool, tenantId)).filter(
      ({ enabled, what }) => enabled && what.includes('digests'),
    )
    return {
      ...{ tenant: publicTenantId(tenantId), ...schedule, time_zone: timeZone },
      next_at: nextDue(schedule, timeZone, await databaseNow(pool)).toISOString(),
      recipients: recipients.map(({ id, name, url }) => ({ destination: id, name, url })),
      email: mail !== null,
    }
  }

  return {
    async show(tenant: string): Promise<DigestView> {
      const { id } = await requireTenant(pool, actor, tenant)
      return toView(id, await readSchedule(pool, id))
    },
    async set(tenant: string, change: Partial<DigestSchedule>): Promise<DigestView> {
      throwIfInvalid(validateSettings(change, SCHEDULE_FIELDS))
      const { id } = await requireTenant(pool, actor, tenant)
      const { timeZone } = await appliedPolicy(pool, id)
      const now = await databaseNow(pool)
      const schedule = await inTransaction(pool, async client => {
        await lockTenant(client, id)
        const before = await readSchedule(client, id)
        const after = { weekday: change.weekday ?? before.weekday, hour: change.hour ?? before.hour }
        await saveSchedule(client, id, after, lastDue(after, timeZone, now))
        const audited = { action: 'digest.update', target: publicTenantId(id), tenantId: id }
        await recordChange(client, actor, { ...audited, before, after })
        return after
      })
      return toView(id, schedule)
    },
  }
}

const WeekdayField = Type.Enum([...WEEKDAYS])
const HourField = Type.Integer({ minimum: 0, maximum: 23 })
const SCHEDULE_FIELDS = {
  weekday: { schema: WeekdayField, expects: `one of ${WEEKDAYS.join(', ')}` },
  hour: { schema: HourField, expects: 'an integer from 0 to 23' },
}

export const DigestSettings = { weekday: WeekdayField, hour: HourField }

export const DigestView = Type.Object({
  tenant: Type.String(),
  ...DigestSettings,
  time_zone: Type.String({ description: 'Of the policy; weekday and hour are in this time zone' }),
  next_at: Timestamp,
  recipients: Type.Array(Type.Object({ destination: Type.String(), name: Type.String(), url: Type.String() }), {
    description: 'Enabled destinations whose `what` contains digests. Without one, no digest is sent',
  }),
  email: Type.Boolean({ description: 'Whether this installation can send e-mail (KONTOR_SMTP_URL is set)' }),
})
export type DigestView = Static<typeof DigestView>
