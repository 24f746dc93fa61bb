import type { Person } from '../../admin/console-sessions.ts'

export type Claims = { sub: string; [name: string]: unknown }

/** What can stand in an audit row: one word, as long as an e-mail address can be. */
const WORD = /^[^\s\p{C}]{1,254}$/u

/** Who a provider's claims are about. Null where there is no usable subject. */
export function personOf(claims: Claims, roleClaim: string): Person | null {
  const { sub: subject, email, email_verified: isVerified } = claims
  if (!WORD.test(subject)) return null
  // Somebody may have typed in another's address: then it is nobody's name.
  const isName = typeof email === 'string' && isVerified !== false && WORD.test(email)
  return { subject, name: isName ? email.toLowerCase() : subject, values: valuesOf(claims, roleClaim) }
}

/** The claim of this name; where there is none, what its dots lead to. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part)
          ? (value as Claims)[part]
          : undefined,
      claims,
    )
}

function valuesOf(claims: Claims, roleClaim: string): string[] {
  if (roleClaim === 'email' && claims.email_verified !== true) return []
  const found = [claimAt(claims, roleClaim)].flat() as unknown[]
  return found.filter(value => typeof value === 'string')
}
