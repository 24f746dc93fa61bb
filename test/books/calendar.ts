/** Instants are whole seconds since 1970, UTC. */
export const HOUR = 3600
export const DAY = 86_400

export type Unit = 'day' | 'week' | 'month' | 'year'

export function instant(iso: string): number {
  return Date.parse(iso) / 1000
}

export function iso(at: number): string {
  return new Date(at * 1000).toISOString()
}

/** The given number of units after the anchor. The 31st becomes the last day of a shorter month. */
export function later(anchor: number, unit: Unit, count: number): number {
  if (unit === 'day') return anchor + count * DAY
  if (unit === 'week') return anchor + count * 7 * DAY
  const date = new Date(anchor * 1000)
  const months = date.getUTCFullYear() * 12 + date.getUTCMonth() + count * (unit === 'year' ? 12 : 1)
  const lastDay = new Date(Date.UTC(Math.floor(months / 12), (months % 12) + 1, 0)).getUTCDate()
  const timeOfDay = ((anchor % DAY) + DAY) % DAY
  const day = Math.min(date.getUTCDate(), lastDay)
  return Date.UTC(Math.floor(months / 12), months % 12, day) / 1000 + timeOfDay
}

/** The start of the day, week (Monday) or month that contains an instant. */
export function startOf(unit: 'day' | 'week' | 'month', at: number): number {
  const day = Math.floor(at / DAY) * DAY
  if (unit === 'day') return day
  // 1 January 1970 was a Thursday: three days after a Monday.
  if (unit === 'week') return day - ((((day / DAY + 3) % 7) + 7) % 7) * DAY
  const date = new Date(at * 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / 1000
}
