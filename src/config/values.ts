import { isIP } from 'node:net'
import { isMailAddress } from '../domain/destinations/addresses.ts'
import { cidrOf } from '../domain/tenants/addresses.ts'
import { trimEnd } from '../domain/trim.ts'

/** Parses the value of a setting. Returns undefined if the value is invalid. */
export type Read<T> = (text: string) => T | undefined

export const word =
  <const W extends string>(...words: W[]): Read<W> =>
  text =>
    words.find(candidate => candidate === text.toLowerCase())

export const boolean: Read<boolean> = text => {
  const answer = text.toLowerCase()
  return answer === 'true' ? true : answer === 'false' ? false : undefined
}

export const integer =
  (least: number, most: number): Read<number> =>
  text => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return number >= least && number <= most ? number : undefined
  }

/** `off` is null. */
export const orOff =
  <T>(read: Read<T>): Read<T | null> =>
  text =>
    text.toLowerCase() === 'off' ? null : read(text)

export const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In milliseconds. A unit is required, because a bare 30 is ambiguous. */
export const duration =
  (leastMs: number, mostMs: number): Read<number> =>
  text => {
    const [, digits, unit] = /^(\d{1,9})\s*(ms|s|m|h|d)$/.exec(text.toLowerCase()) ?? []
    const ms = Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS]
    return ms >= leastMs && ms <= mostMs ? ms : undefined
  }

const UNIT_BYTES = { '': 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, kb: 1e3, mb: 1e6, gb: 1e9 }

export const bytes =
  (least: number, most: number): Read<number> =>
  text => {
    const [, digits, unit] = /^(\d{1,15})\s*(|[kmg]i?b)$/.exec(text.toLowerCase()) ?? []
    const size = Number(digits) * UNIT_BYTES[unit as keyof typeof UNIT_BYTES]
    return size >= least && size <= most ? size : undefined
  }

/** As a fraction of 1. */
export const percent: Read<number> = text => {
  const [, digits] = /^(\d{1,2}(?:\.\d{1,3})?|100) ?%$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) / 100
}

export const port = integer(0, 65_535)

export const host: Read<string> = text =>
  isIP(text) !== 0 || /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(text) ? text : undefined

export const userName: Read<string> = text => (/^[A-Za-z_][\w.-]{0,31}$/.test(text) ? text : undefined)

export const headerName: Read<string> = text =>
  /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/i.test(text) ? text.toLowerCase() : undefined

/** A local directory, or a bucket with an optional key prefix. */
export const archiveUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.search !== '' || url.hash !== '' || url.username !== '') return undefined
  const isDirectory = url.protocol === 'file:' && url.hostname === '' && url.pathname.length > 1
  const isBucket = url.protocol === 's3:' && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname)
  return isDirectory || isBucket ? text : undefined
}

export function withoutTrailingSlash(url: string): string {
  return trimEnd(url, char => char === '/')
}

/** Without a trailing slash. */
export const httpUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url && url.search === '' && url.hash === '' && url.username === ''
  return isPlain && ['http:', 'https:'].includes(url.protocol) ? withoutTrailingSlash(url.href) : undefined
}

/** One or more of `words`, without duplicates, in the order of `words`. `all` selects all of them. */
export const listOfWords =
  <const W extends string>(words: readonly W[]): Read<W[]> =>
  text => {
    const given = text
      .toLowerCase()
      .split(',')
      .map(part => part.trim())
      .filter(part => part !== '')
    if (given.length === 1 && given[0] === 'all') return [...words]
    if (given.length === 0 || given.some(part => !words.includes(part as W))) return undefined
    return words.filter(candidate => given.includes(candidate))
  }

const KEY_BYTES = 32

/** Keys of 32 bytes as hex or base64, separated by commas. The first encrypts, all of them decrypt. */
export const secretKeys: Read<Buffer[]> = text => {
  const keys = text.split(',').map(part => parseKey(part.trim()))
  return keys.every(key => key !== undefined) ? keys : undefined
}

function parseKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length === KEY_BYTES ? key : undefined
}

const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal']

/** Proxies whose X-Forwarded-For is trusted: none, all, a number of hops, or a list of addresses and networks. */
export const trustedProxies: Read<boolean | number | string[]> = text => {
  const lower = text.toLowerCase()
  if (lower === 'off') return false
  if (lower === 'all') return true
  if (/^[1-9]$/.test(lower)) return Number(lower)
  const networks = lower.split(',').map(part => part.trim())
  const isNetwork = (network: string) => NAMED_NETWORKS.includes(network) || cidrOf(network) !== null
  return networks.every(isNetwork) ? networks : undefined
}

/** One line without spaces and control characters. */
export const line: Read<string> = text => (/^[\x21-\x7e]{1,1000}$/.test(text) ? text : undefined)

export const claimName: Read<string> = text => (/^[^\s,]{1,200}$/.test(text) ? text : undefined)

/** Unchanged, because a trailing slash is part of the issuer's name. */
export const issuerUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url && url.username === '' && url.hash === '' && isSecureUrl(url) ? text : undefined
}

/** Whether the connection cannot be intercepted: https, or http on the loopback interface. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  const isLoopback = LOOPBACK.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

/** A mail server. `tls`: from the start of the connection, by STARTTLS, or not at all. */
export type SmtpServer = {
  host: string
  port: number
  user: string | null
  password: string | null
  tls: 'always' | 'starttls' | 'off'
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** A password is never sent to another machine without encryption. */
export const smtpUrl: Read<SmtpServer> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '' || url.port === '0') return undefined
  const isOff = url.search === '?tls=off'
  const isPlain = ['', '/'].includes(url.pathname) && url.hash === '' && (url.search === '' || isOff)
  const [user, password] = [url.username, url.password].map(part => decoded(part))
  if (!isPlain || user === undefined || password === undefined || (user === '') !== (password === '')) return undefined
  const isAlways = url.protocol === 'smtps:'
  if (isOff && (isAlways || (user !== '' && !LOOPBACK.test(url.hostname)))) return undefined
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || (isAlways ? 465 : 587),
    user: user || null,
    password: password || null,
    tls: isAlways ? 'always' : isOff ? 'off' : 'starttls',
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

export function hideSmtpPassword(text: string): string {
  const url = smtpUrl(text) && new URL(text)
  if (!url) return '(hidden)'
  if (url.password !== '') url.password = 'hidden'
  return url.href
}

export const mailAddress: Read<string> = text => (isMailAddress(text) ? text : undefined)

type RoleMapping = { value: string; role: 'viewer' | 'operator' | 'admin'; tenant: string | null }

/** `value=role` or `value=role@tenant`; the value may contain both characters. */
export const roleMappings: Read<RoleMapping[]> = text => {
  const mappings = text.split(',').map(part => {
    const mapping = part.trim()
    // The last `=role` counts, because the value may contain others.
    const found = [...mapping.matchAll(/=(viewer|operator|admin)(@|$)/g)]
      .map(({ 0: all, 1: role, 2: at, index }) => ({
        role,
        at,
        index,
        tenant: mapping.slice(index + all.length).trim(),
      }))
      .findLast(({ at, index, tenant }) => index > 0 && (at === '' || tenant !== ''))
    if (!found) return undefined
    const { role, at, index, tenant } = found
    return { value: mapping.slice(0, index).trim(), role, tenant: at === '' ? null : tenant }
  })
  return mappings.every(mapping => mapping !== undefined) ? (mappings as RoleMapping[]) : undefined
}

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s

/**
 * One address per host, in the given order: `postgres://u@one:1,two:2/db` has two. Undefined if libpq would reject the URL, or if
 * `target_session_attrs` asks for a read-only server.
 */
export function readDatabaseUrl(text: string): string[] | undefined {
  const [, before, hosts, after] = PARTS.exec(text) ?? []
  const addresses = hosts?.includes(',') ? hosts.split(',').map(host => before + host + after) : [text]
  return addresses.every(isAddress) ? addresses : undefined
}

function isAddress(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !['postgres:', 'postgresql:'].includes(url.protocol) || url.pathname.length <= 1) return false
  return ['any', 'read-write', 'primary'].includes(url.searchParams.get('target_session_attrs') ?? 'any')
}

export function hidePassword(text: string): string {
  const addresses = readDatabaseUrl(text)
  return addresses ? formatDatabaseUrl(addresses) : '(hidden)'
}

export function formatDatabaseUrl(addresses: string[]): string {
  const url = new URL(addresses[0]!)
  if (url.password !== '') url.password = 'hidden'
  for (const name of url.searchParams.keys()) if (/password/i.test(name)) url.searchParams.set(name, 'hidden')
  const [, before, , after] = PARTS.exec(url.href)!
  return before + addresses.map(address => new URL(address).host).join(',') + after
}

type NatsAddress = {
  /** host:port */
  servers: string[]
  tls: boolean
  user: string | null
  password: string | null
  token: string | null
}

const NATS_PORT = '4222'
const NATS_SCHEMES = ['nats:', 'tls:']

/** One or more servers of a cluster. A user name without a password is a token. */
export const readNatsUrl: Read<NatsAddress> = text => {
  const urls = text.split(',').map(part => {
    const full = /^[a-z]+:\/\//i.test(part.trim()) ? part.trim() : `nats://${part.trim()}`
    return URL.canParse(full) ? new URL(full) : null
  })
  if (!urls.every(url => url !== null && NATS_SCHEMES.includes(url.protocol) && url.hostname !== '')) return undefined
  const given = urls as URL[]
  if (given.some(({ pathname, search }) => !['', '/'].includes(pathname) || search !== '')) return undefined
  const named = given.find(({ username }) => username !== '')
  const hasPassword = named !== undefined && named.password !== ''
  const user = named ? decodeURIComponent(named.username) : null
  return {
    servers: given.map(({ hostname, port }) => `${hostname}:${port || NATS_PORT}`),
    tls: given.some(({ protocol }) => protocol === 'tls:'),
    user: hasPassword ? user : null,
    password: hasPassword ? decodeURIComponent(named.password) : null,
    token: hasPassword ? null : user,
  }
}

export const hideNatsCredentials = (text: string) => readNatsUrl(text)?.servers.join(',') ?? '(hidden)'
export const filePath: Read<string> = text => (text.includes('\0') ? undefined : text)
