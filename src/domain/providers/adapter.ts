/** Maps the fields of a provider's events to canonical events. Adapters have no state. */

import type { Fields } from '../billing/fields.ts'
import type { Instant, Term } from '../billing/types.ts'
import { type Decimal, decimalText, knownCurrency, minorDigits, parseDecimal } from '../money.ts'

/** One fact of an event, as a canonical event or a term. docs/guides/subscriptions.md describes the payloads. */
export type ProviderFact =
  | {
      type: string
      payload: Fields
      /** Ids of coupons that the object refers to. Later changes of these coupons apply to it. */
      coupons?: string[]
      /** The refund is a chargeback. */
      isDispute?: true
    }
  | { term: Omit<Term, 'sourceAt'>; at: unknown }

export type ProviderEvent = {
  /** The provider's name of the event, before the source's override. */
  eventType: string
  body: Fields
  occurredAt: Instant
}

export type Adapter = {
  /** Whether the shape of a body identifies it as an event of this provider. */
  recognizes(body: Fields): boolean
  eventType(body: Fields): string
  /** Empty: not about billing. Null: about billing, but not understood. */
  read(event: ProviderEvent): ProviderFact[] | null
}

/**
 * Converts an amount in minor units ("1999") to exact decimal text in major units; undefined: none, or no currency. A value
 * that is not an amount is returned as it is, so that reports warn about it.
 */
export function minorToMajor(minor: unknown, currency: unknown): string | undefined {
  const code = knownCurrency(currency)
  const decimal = parseDecimal(minor)
  if (!decimal && minor !== undefined && minor !== null) return unreadableText(minor)
  return code && decimal ? decimalText({ ...decimal, scale: decimal.scale + minorDigits(code) }) : undefined
}

/** The text of a value that is not a number. As a string, [4] would be one. */
function unreadableText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Finer than any currency. The rounding error is below 10⁻⁸. */
const QUOTIENT_DIGITS = 10

/** total ÷ quantity as decimal text; undefined: no total, or a quantity of 0. A total that is not a number is returned as it is. */
export function divideAmount(total: unknown, quantity: unknown): string | undefined {
  const whole = parseDecimal(total)
  const parts = parseDecimal(quantity ?? 1)
  if (!whole && total !== undefined && total !== null) return unreadableText(total)
  if (!whole || !parts || parts.digits <= 0n) return undefined
  const unit: Decimal = {
    digits: (whole.digits * 10n ** BigInt(QUOTIENT_DIGITS + parts.scale)) / parts.digits,
    scale: whole.scale + QUOTIENT_DIGITS,
  }
  return decimalText(unit)
}

/** A price for all units together, whatever the quantity. */
export function flatPrice(amount: string): Fields {
  return { tiers_mode: 'volume', tiers: [{ up_to: null, unit_amount: 0, flat_amount: amount }] }
}
