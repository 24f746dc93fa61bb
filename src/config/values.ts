import { isIP } from 'node:net'
import { cidrOf } from '../domain/tenants/addresses.ts'

/** Reads the text of a setting; undefined where it is not what the setting expects. */
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

/** In milliseconds. A number needs its unit: a bare 30 means seconds to one reader and days to the next. */
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

/** As a part of one. */
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

/** A directory of this machine, or a bucket and what stands before the names in it. */
export const archiveUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.search !== '' || url.hash !== '' || url.username !== '') return undefined
  const isDirectory = url.protocol === 'file:' && url.hostname === '' && url.pathname.length > 1
  const isBucket = url.protocol === 's3:' && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname)
  return isDirectory || isBucket ? text : undefined
}

/** Without the slash at its end. */
export const httpUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url && url.search === '' && url.hash === '' && url.username === ''
  return isPlain && ['http:', 'https:'].includes(url.protocol) ? url.href.replace(/\/+$/, '') : undefined
}

/** One or more words of a list, each once, in the list's own order; `all` is all of them. */
export const wordsOf =
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

/** 32 bytes as hex or base64. Several, separated by commas: the first one seals, all of them open. */
export const secretKeys: Read<Buffer[]> = text => {
  const keys = text.split(',').map(part => keyFrom(part.trim()))
  return keys.every(key => key !== undefined) ? keys : undefined
}

function keyFrom(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length === KEY_BYTES ? key : undefined
}

const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal']

/** Whose X-Forwarded-For is believed: nobody, everybody, so many hops, or these addresses and networks. */
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

/** As it was written: its slash at the end is part of an issuer's name. */
export const issuerUrl: Read<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url && url.username === '' && url.hash === '' && isProtected(url) ? text : undefined
}

/** Nobody on the way can read it: https, or http that does not leave the machine. */
export function isProtected({ protocol, hostname }: URL): boolean {
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

type RoleMapping = { value: string; role: 'viewer' | 'operator' | 'admin'; tenant: string | null }

/** `value=role` or `value=role@tenant`; the value may contain both characters. */
export const roleMappings: Read<RoleMapping[]> = text => {
  const mappings = text.split(',').map(part => {
    const [, value, role, tenant] = /^(.+)=(viewer|operator|admin)(?:@(.+))?$/.exec(part.trim()) ?? []
    return value && role ? { value: value.trim(), role, tenant: tenant?.trim() ?? null } : undefined
  })
  return mappings.every(mapping => mapping !== undefined) ? (mappings as RoleMapping[]) : undefined
}
