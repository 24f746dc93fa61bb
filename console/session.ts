import { computed, signal } from '@preact/signals'
import { nullOn, Problem, request, WITH_COOKIE } from './api/request.ts'
import type { CreatedKey, List, Role, Tenant } from './api/types.ts'

type ReadKey = Pick<CreatedKey, 'id' | 'key' | 'expires_at'>

/** The person who is signed in with a cookie, which scripts cannot read. */
export type Person = { name: string; role: Role; expires_at: string }

/** The session: a person, an admin key or a private key, and the read keys that the console created. */
type State = {
  person?: Person
  adminKey?: string
  privateKey?: string
  tenant?: string | null
  /** By tenant. */
  readKeys?: Record<string, ReadKey>
  /** By tenant, the last currency of reports. */
  currencies?: Record<string, string>
}

/** The session is in sessionStorage only: it ends with the tab, and no address contains it. */
const STORED_AS = 'kontor.console'
const READ_KEY_HOURS = 12
const READ_SCOPES = [
  'products:read',
  'contacts:read',
  'orders:read',
  'events:read',
  'conversions:read',
  'subscriptions:read',
]

const state = signal<State>(JSON.parse(sessionStorage.getItem(STORED_AS) ?? '{}'))
const pendingReadKeys = new Map<string, Promise<string>>()

export const person = computed(() => state.value.person ?? null)
export const isAdmin = computed(() => Boolean(state.value.adminKey ?? state.value.person))
export const isSignedIn = computed(() => isAdmin.value || state.value.privateKey !== undefined)
/** The id of the selected tenant; null with a private key, which has only one. */
export const tenant = computed(() => state.value.tenant ?? null)
/** The last currency of this tenant's reports. */
export const currency = computed(() => state.value.currencies?.[tenant.value ?? ''] ?? null)
/** Ids of the keys that this console created. */
export const ownKeys = computed(() => Object.values(state.value.readKeys ?? {}).map(({ id }) => id))

export function chooseTenant(id: string | null): void {
  change({ tenant: id })
}

export function rememberCurrency(code: string): void {
  if (code !== currency.value) change({ currencies: { ...state.value.currencies, [tenant.value ?? '']: code } })
}

/** The sign-in provider; null if only keys can sign in. */
const provider = document.querySelector<HTMLLinkElement>('link[rel=kontor-sign-in]')
export const signInProvider = provider && { name: provider.title, start: provider.href }

/** A person's session is shared by all tabs. A tab without a key asks the server who is signed in. */
export async function resume(): Promise<void> {
  const { adminKey, privateKey, person: before } = state.value
  if (signInProvider === null || adminKey || privateKey) return
  const found = await nullOn(401, request<Person>(WITH_COOKIE, '/console/oidc/session'))
  if (found?.name !== before?.name) forget()
  if (found) change({ person: found })
}

/** Starts a session with a key, or throws. */
export async function signIn(text: string): Promise<void> {
  const key = text.trim()
  if (key.startsWith('adm_')) {
    const { results } = await explainUnknownKey(request<List<Tenant>>(key, '/admin/v1/tenants'))
    replace({ adminKey: key, tenant: results[0]?.id ?? null })
  } else if (key.startsWith('private-')) {
    // A key without this scope is valid too. The events page then names the missing scope.
    await nullOn(403, explainUnknownKey(request(key, '/v1/events', { query: { limit: 1 } })))
    replace({ privateKey: key })
  } else throw new Error(describeWrongKey(key))
}

/** Replaces the server's message, which is about routes, with one about the key. */
async function explainUnknownKey<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'invalid_credentials') throw error
    const { status, title, code, requestId: request_id } = error
    const detail = 'Unknown key. Check that it is complete and belongs to this installation.'
    throw new Problem({ status, title, detail, code, request_id })
  }
}

/** Clears the session and revokes the created keys. Throws if the person is still signed in. */
export async function signOut(): Promise<void> {
  if (person.value) {
    // Only the server can end the session. It also revokes the keys.
    await nullOn(401, request(WITH_COOKIE, '/console/oidc/sign-out', { method: 'POST', keepalive: true }))
    return forget()
  }
  const { adminKey } = state.value
  const ids = ownKeys.value
  forget()
  if (!adminKey) return
  const revoke = (id: string) => request(adminKey, `/admin/v1/keys/${id}/revoke`, { method: 'POST', keepalive: true })
  await Promise.allSettled(ids.map(revoke))
}

export function forget(): void {
  state.value = {}
  sessionStorage.removeItem(STORED_AS)
}

/** The credential for the admin API. */
export function adminKey(): string {
  return state.value.adminKey ?? WITH_COOKIE
}

/** A private key for the selected tenant: the one that was entered, or a short-lived read-only key. */
export async function dataKey(): Promise<string> {
  const { privateKey, readKeys } = state.value
  if (privateKey) return privateKey
  const id = tenant.value ?? ''
  const known = readKeys?.[id]
  if (known && Date.parse(known.expires_at ?? '') > Date.now() + 60_000) return known.key
  const making = pendingReadKeys.get(id) ?? createReadKey(id).finally(() => pendingReadKeys.delete(id))
  pendingReadKeys.set(id, making)
  return making
}

export function forgetDataKey(): void {
  const { [tenant.value ?? '']: _gone, ...readKeys } = state.value.readKeys ?? {}
  change({ readKeys })
}

async function createReadKey(tenantId: string): Promise<string> {
  // A person's key expires with the session; the server recognizes it by that.
  const ends = person.value?.expires_at ?? new Date(Date.now() + READ_KEY_HOURS * 3_600_000).toISOString()
  const { id, key, expires_at } = await request<CreatedKey>(adminKey(), '/admin/v1/keys', {
    method: 'POST',
    body: {
      tenant: tenantId,
      kind: 'private',
      scopes: READ_SCOPES,
      expires_at: ends,
    },
  })
  change({ readKeys: { ...state.value.readKeys, [tenantId]: { id, key, expires_at } } })
  return key
}

function change(changes: State): void {
  replace({ ...state.value, ...changes })
}

function replace(next: State): void {
  state.value = next
  sessionStorage.setItem(STORED_AS, JSON.stringify(next))
}

function describeWrongKey(key: string): string {
  if (key === '') return 'Enter an admin key (adm_…) or a private key (private-…).'
  if (key.startsWith('trk_')) return 'This is a tracking key. It can send events but cannot read data.'
  if (key.startsWith('tok_')) return 'This is a source token. It can send webhooks but cannot read data.'
  return 'This is neither an admin key (adm_…) nor a private key (private-…).'
}
