import { computed, signal } from '@preact/signals'
import { cookieFor, nullOn, Problem, request, WITH_COOKIE } from './api/request.ts'
import type { Role } from './api/types.ts'

/** The person or admin key that is signed in with a cookie, which scripts cannot read. `actor`: as in `created_by` of a key. */
export type Person = { name: string; actor: string; role: Role; expires_at: string }

/** The session: a person with a cookie, or a private key. */
type State = {
  person?: Person
  privateKey?: string
  tenant?: string | null
}

/** What this tab shows. The cookie is shared by all tabs; a private key is in this tab only. */
const STORED_AS = 'kontor.console'

const state = signal<State>(JSON.parse(sessionStorage.getItem(STORED_AS) ?? '{}'))

export const person = computed(() => state.value.person ?? null)
export const isAdmin = computed(() => state.value.person !== undefined)
export const isSignedIn = computed(() => isAdmin.value || state.value.privateKey !== undefined)
const RANKS: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 }

/** Whether the person may do what needs this role. The server checks it again. */
export function hasRole(needed: Role): boolean {
  return person.value === null || RANKS[person.value.role] >= RANKS[needed]
}

/** The id of the selected tenant; null with a private key, which has only one. */
export const tenant = computed(() => state.value.tenant ?? null)
export function chooseTenant(id: string | null): void {
  if (id !== tenant.peek()) change({ tenant: id })
}

/** The sign-in provider; null if only keys can sign in. */
const provider = document.querySelector<HTMLLinkElement>('link[rel=kontor-sign-in]')
export const signInProvider = provider && { name: provider.title, start: provider.href }

// Without this, data stays on the screen of the other tabs after a sign-out, and they act for the next person who signs in.
const otherTabs = new BroadcastChannel(STORED_AS)
otherTabs.onmessage = () => resume().catch(() => {})
const notifyOtherTabs = () => otherTabs.postMessage('session changed')

/** A session is shared by all tabs. A tab without a private key asks the server who is signed in. */
export async function resume(): Promise<void> {
  const { privateKey, person: before } = state.value
  if (privateKey) return
  const found = await request<Person | null>(WITH_COOKIE, '/console/session')
  if (found?.name !== before?.name) forget()
  if (found) change({ person: found })
}

/** Starts a session with a key, or throws. */
export async function signInWithKey(text: string): Promise<void> {
  const key = text.trim()
  if (key.startsWith('adm_')) return explainUnknownKey(begin('/console/session', { key }))
  if (!key.startsWith('private-')) throw new Error(describeWrongKey(key))
  // A key without this scope is valid too. The events page then names the missing scope.
  await nullOn(403, explainUnknownKey(request(key, '/v1/events', { query: { limit: 1 } })))
  replace({ privateKey: key })
}

export function signInWithPassword(name: string, password: string): Promise<void> {
  return begin('/console/session', { name, password })
}

export const findInvitation = (token: string) =>
  request<{ name: string; role: Role }>(WITH_COOKIE, '/console/invitation', { method: 'POST', body: { token } })

export function acceptInvitation(token: string, password: string): Promise<void> {
  return begin('/console/invitation/accept', { token, password })
}

async function begin(path: string, body: object): Promise<void> {
  await request(WITH_COOKIE, path, { method: 'POST', body })
  forget()
  notifyOtherTabs()
  await resume()
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

/** Throws if the person is still signed in: only the server can end the session. */
export async function signOut(): Promise<void> {
  if (person.value) {
    await nullOn(401, request(WITH_COOKIE, '/console/sign-out', { method: 'POST', keepalive: true }))
    notifyOtherTabs()
  }
  forget()
}

/** Why the session ended. */
export const signOutReason = signal<unknown>(null)

/** The key or the session is no longer valid. */
export function endSession(reason: unknown): void {
  signOutReason.value = reason
  forget()
}

function forget(): void {
  state.value = {}
  sessionStorage.removeItem(STORED_AS)
}

/** The credential for the data of the selected tenant: the private key, or the cookie. */
export function dataKey(): string {
  return state.value.privateKey ?? cookieFor(tenant.value ?? '')
}

function change(changes: State): void {
  replace({ ...state.value, ...changes })
}

function replace(next: State): void {
  state.value = next
  // The tenant of an address is chosen without a session too. After a sign-out nothing is stored.
  if (isSignedIn.value) sessionStorage.setItem(STORED_AS, JSON.stringify(next))
}

function describeWrongKey(key: string): string {
  if (key === '') return 'Enter an admin key (adm_…) or a private key (private-…).'
  if (key.startsWith('trk_')) return 'This is a tracking key. It can send events but cannot read data.'
  if (key.startsWith('tok_')) return 'This is a source token. It can send webhooks but cannot read data.'
  return 'This is neither an admin key (adm_…) nor a private key (private-…).'
}
