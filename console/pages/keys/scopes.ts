export const SCOPES = [
  'products:read',
  'products:write',
  'contacts:read',
  'contacts:write',
  'orders:read',
  'orders:write',
  'events:read',
  'conversions:read',
  'subscriptions:read',
]

const READING = SCOPES.filter(scope => scope.endsWith(':read'))

/** What a private key may do, in few words. */
export function scopesInWords(scopes: string[]): string {
  if (SCOPES.every(scope => scopes.includes(scope))) return 'all'
  const isAllReading = scopes.length === READING.length && READING.every(scope => scopes.includes(scope))
  return isAllReading ? 'read only' : scopes.join(', ')
}
