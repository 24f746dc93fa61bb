import { call } from './request.js'

/**
 * Who is signed in: { adminKey } or { privateKey }, the chosen tenant, and the read keys that this console made. It
 * lives in sessionStorage: gone with the tab, never on the disk of the server, never in an address.
 */
const NAME = 'kontor.console'
const READ_KEY_HOURS = 12
const READ_SCOPES = [
  'products:read',
  'contacts:read',
  'orders:read',
  'events:read',
  'conversions:read',
  'subscriptions:read',
]

let state = JSON.parse(sessionStorage.getItem(NAME) ?? '{}')
const making = new Map()

export const session = {
  get isOpen() {
    return Boolean(state.adminKey || state.privateKey)
  },
  get adminKey() {
    return state.adminKey ?? null
  },
  /** The id of the chosen tenant; null for somebody with a private key, which has but one. */
  get tenant() {
    return state.tenant ?? null
  },
  set tenant(tenant) {
    change({ tenant })
  },
  /** The currency that reports were last looked at in. */
  get currency() {
    return state.currencies?.[state.tenant ?? ''] ?? null
  },
  set currency(currency) {
    change({ currencies: { ...state.currencies, [state.tenant ?? '']: currency } })
  },
  /** Ids of the keys that this console made. */
  get madeKeys() {
    return Object.values(state.readKeys ?? {}).map(({ id }) => id)
  },
}

/** Opens a session with a key, or throws the reason why not. */
export async function signIn(text) {
  const key = text.trim()
  if (key.startsWith('adm_')) {
    const { results } = await call('/admin/v1/tenants', { key })
    state = {}
    change({ adminKey: key, tenant: results[0]?.id ?? null })
  } else if (key.startsWith('private-')) {
    // A key without this scope is good too: then the events view says what it lacks.
    await call('/v1/events', { key, query: { limit: 1 } }).catch(error => {
      if (error.status !== 403) throw error
    })
    state = {}
    change({ privateKey: key })
  } else throw new Error(whatIsWrong(key))
}

/** Forgets everything, and revokes the keys that were made. */
export async function signOut() {
  const { adminKey: key } = state
  const ids = session.madeKeys
  close()
  await Promise.allSettled(
    ids.map(id => call(`/admin/v1/keys/${id}/revoke`, { method: 'POST', key, keepalive: true })),
  )
}

export function close() {
  state = {}
  sessionStorage.removeItem(NAME)
}

/** A private key for the chosen tenant: the one that was given, or a short-lived one that can only read. */
export async function dataKey() {
  const { privateKey, tenant, readKeys } = state
  if (privateKey) return privateKey
  const known = readKeys?.[tenant]
  if (known && Date.parse(known.expires_at) > Date.now() + 60_000) return known.key
  if (!making.has(tenant))
    making.set(
      tenant,
      makeReadKey(tenant).finally(() => making.delete(tenant)),
    )
  return making.get(tenant)
}

export function forgetDataKey() {
  const { [state.tenant]: _gone, ...readKeys } = state.readKeys ?? {}
  change({ readKeys })
}

async function makeReadKey(tenant) {
  const expires = new Date(Date.now() + READ_KEY_HOURS * 3_600_000).toISOString()
  const { id, key, expires_at } = await call('/admin/v1/keys', {
    method: 'POST',
    key: state.adminKey,
    body: { tenant, kind: 'private', scopes: READ_SCOPES, expires_at: expires },
  })
  change({ readKeys: { ...state.readKeys, [tenant]: { id, key, expires_at } } })
  return key
}

function change(changes) {
  state = { ...state, ...changes }
  sessionStorage.setItem(NAME, JSON.stringify(state))
}

function whatIsWrong(key) {
  if (key === '') return 'Paste an admin key (adm_…) or a private key (private-…).'
  if (key.startsWith('trk_')) return 'This is a tracking key: it can send events, but not read anything.'
  if (key.startsWith('tok_')) return "This is a source's token: it can send webhooks, but not read anything."
  return 'This is neither an admin key (adm_…) nor a private key (private-…).'
}
