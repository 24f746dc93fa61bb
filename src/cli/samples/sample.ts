import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { PresetName } from '../../domain/inbound/preset.ts'

/** What a sender would send. */
export type Sample = { body: Record<string, unknown>; headers?: Record<string, string> }

/** Makes a sample whose ids are new; `now`: when it happens. */
export type MakeSample = (now: Date) => Sample

/** Where samples go: to the event API, to a source of this preset, or to a source without one, of this type. */
export type SampleTarget = 'events' | { preset: PresetName } | { type: 'webhook' | 'cdp' }

export const unix = (at: Date) => Math.floor(at.getTime() / 1000)
export const uuid = () => randomUUID()
/** As shops number their objects. */
export const numberId = () => 5_000_000_000_000 + randomInt(900_000_000_000)

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** in_1PqX…: a prefix and letters, as Stripe and others write ids. */
export function idWith(prefix: string, length = 24): string {
  let text = prefix
  for (const byte of randomBytes(length)) text += LETTERS[byte % LETTERS.length]
  return text
}

/** Somebody new: not one person who buys everything. */
export function person() {
  const name = NAMES[randomInt(NAMES.length)]!
  const [first, last] = name.split(' ') as [string, string]
  const email = `${first}.${last}.${randomInt(1_000_000)}@example.com`.toLowerCase()
  return { name, first, last, email }
}

const NAMES = [
  'Ada Novak',
  'Bruno Keller',
  'Chiara Rossi',
  'Emil Larsen',
  'Jo Martin',
  'Lena Fischer',
  'Noor Haddad',
  'Sam Okafor',
]
