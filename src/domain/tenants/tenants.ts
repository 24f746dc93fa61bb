import type { IpMode } from './ip-addresses.ts'

export type Tenant = {
  id: number
  name: string
  /** Null: the default list. */
  conversionTypes: string[] | null
  /** Maximum age in days of an event from a public tracking key. 0: no limit. Null: the setting of the installation. */
  eventsFloorDays: number | null
  ipAddresses: IpMode
  createdAt: Date
}

const MAX_FLOOR_DAYS = 36_500

/** Days as `3650d`, or `off` for no limit. Undefined if invalid. */
export function parseEventsFloor(text: string): number | undefined {
  if (text === 'off') return 0
  const days = Number(/^([1-9]\d{0,4})d$/.exec(text)?.[1])
  return days <= MAX_FLOOR_DAYS ? days : undefined
}

export function shownEventsFloor(days: number): string {
  return days === 0 ? 'off' : `${days}d`
}

export function publicTenantId(id: number): string {
  return `ten_${id}`
}

export function parseTenantId(text: string): number | null {
  const digits = /^ten_([1-9]\d{0,9})$/.exec(text)?.[1]
  return digits !== undefined && Number(digits) <= 2_147_483_647 ? Number(digits) : null
}
