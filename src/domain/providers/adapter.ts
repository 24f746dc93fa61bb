/** How a provider's events become canonical ones: a mapping of fields, and nothing that remembers. */

import type { Fields } from '../billing/fields.ts'
import type { Instant, Term } from '../billing/types.ts'
import { type Decimal, decimalText, knownCurrency, minorDigits, parseDecimal } from '../money.ts'

/** One thing that an event says, as a canonical event; see docs/guides/subscriptions.md for the payloads. */
export type Told =
  | {
      type: string
      payload: Fields
      /** Coupons that the object names by id: what is told of them later counts for it. */
      coupons?: string[]
      /** A refund that the customer's bank took. */
      isDispute?: true
    }
  | { term: Omit<Term, 'sourceAt'>; at: unknown }

export type ProviderEvent = {
  /** The provider's own name for what happened, whatever the source calls it. */
  eventType: string
  body: Fields
  occurredAt: Instant
}

export type Adapter = {
  /** Whether a body is an event of this provider, where that can be told by its shape. */
  recognizes(body: Fields): boolean
  eventType(body: Fields): string
  /** Empty: nothing of billing. Null: it should say something, and what is not understood. */
  tell(event: ProviderEvent): Told[] | null
}

/** An amount in whole minor units ("1999") as exact decimal text in major ones; undefined where it is none. */
export function majorOf(minor: unknown, currency: unknown): string | undefined {
  const code = knownCurrency(currency)
  const decimal = parseDecimal(minor)
  return code && decimal ? decimalText({ ...decimal, scale: decimal.scale + minorDigits(code) }) : undefined
}

/** Finer than any currency: what is left over is less than a hundred-millionth. */
const QUOTIENT_DIGITS = 10

/** total ÷ quantity as decimal text; undefined where there is nothing to divide by. */
export function unitOf(total: unknown, quantity: unknown): string | undefined {
  const whole = parseDecimal(total)
  const parts = parseDecimal(quantity ?? 1)
  if (!whole || !parts || parts.digits <= 0n) return undefined
  const unit: Decimal = {
    digits: (whole.digits * 10n ** BigInt(QUOTIENT_DIGITS + parts.scale)) / parts.digits,
    scale: whole.scale + QUOTIENT_DIGITS,
  }
  return decimalText(unit)
}

/** A price for all units together, however many there are. */
export function flatPrice(amount: string): Fields {
  return { tiers_mode: 'volume', tiers: [{ up_to: null, unit_amount: 0, flat_amount: amount }] }
}
