import { isIP } from 'node:net'
import { MAX_DEPTH } from '../json/json.ts'
import { trimEnd } from '../trim.ts'
import { groupsOf } from './addresses.ts'

/** How a tenant's IP addresses are stored: kept, truncated to their network, or dropped. */
export const IP_MODES = ['keep', 'truncate', 'drop'] as const
export type IpMode = (typeof IP_MODES)[number]

export function isIpMode(text: string): text is IpMode {
  return (IP_MODES as readonly string[]).includes(text)
}

/** The address as the tenant stores it. Null if it stores none, or if the address is invalid. */
export function keptAddress(mode: IpMode, address: string | null): string | null {
  if (mode === 'keep' || address === null) return address
  return mode === 'drop' ? null : networkOf(address)
}

/** 203.0.113.7 → 203.0.113.0, 2001:db8:1:2::3 → 2001:db8:1:: */
function networkOf(text: string): string | null {
  const address = text.trim().split('%', 1)[0]!
  const version = isIP(address)
  if (version === 4) return `${address.slice(0, address.lastIndexOf('.'))}.0`
  return version === 6 ? networkOfV6(address) : null
}

function networkOfV6(address: string): string {
  const groups = groupsOf(address)
  // An IPv4-mapped address has the IPv4 address in its last two groups.
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  if (isMapped) return `${groups[6]! >> 8}.${groups[6]! & 255}.${groups[7]! >> 8}.0`
  // 6to4: the IPv4 address is in bits 16 to 48.
  if (groups[0] === 0x2002) groups[2]! &= 0xff00
  const kept = groups.slice(0, 3)
  const text = `${kept.map(group => group.toString(16)).join(':')}::`
  return new URL(`http://[${text}]`).hostname.slice(1, -1)
}

// Fields whose strings are addresses, and in whose objects and lists every string may be one.
const IP_WORD =
  /^(?:client|remote|user|visitor|source|src|browser|real|peer|socket|customer|login|last)?ip(?:s|v[46]|addr(?:ess(?:es)?)?s?)?$/
const OF_IP = /^(?:v?\d|addr(?:ess(?:es)?|s)?)?$/
// Fields that may contain an address: only values that parse as an address count.
const ADDRESS_WORD = /^(?:addr(?:ess(?:es)?|s)?|remoteaddr|forwarded|via|xff|remote|peer|client)$/

/** `ip`, `browser_ip`, `ip_addresses`: wholly. `ip_of_office`: strictly. `client.address`, `x-forwarded-for`, `via`: maybe. */
function namesAddress(field: string): Naming {
  if (!HINT.test(field)) return null
  const remembered = namings.get(field)
  if (remembered !== undefined) return remembered
  const naming = field.length > MAX_NAME ? null : namingOf(field)
  if (namings.size >= MAX_REMEMBERED) namings.clear()
  namings.set(field, naming)
  return naming
}

// A quick test: every such name contains one of these, most other names none.
const HINT = /ip|addr|forward|via|xff|remote|peer|client/i

type Naming = 'wholly' | 'strictly' | 'maybe' | null

// Cached, because a batch has thousands of fields with few distinct names.
const namings = new Map<string, Naming>()
const MAX_REMEMBERED = 2_000
const MAX_NAME = 64

function namingOf(field: string): Naming {
  const words = field
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  const ipAt = words.findLastIndex(word => IP_WORD.test(word))
  if (ipAt >= 0) return words.slice(ipAt + 1).every(word => OF_IP.test(word)) ? 'wholly' : 'strictly'
  return words.some(word => ADDRESS_WORD.test(word)) ? 'maybe' : null
}

const TOKEN = /[\da-fA-F.:]{2,}(?:%[\w.-]+)?/g

/** Replaces the addresses in a string by their networks, without ports. Null if there are none. */
function cut(text: string): string | null {
  const whole = isIP(text) > 0 ? networkOf(text) : null
  if (whole !== null) return whole
  let isFound = false
  const networks = text.replace(TOKEN, token => {
    const network = networkOfToken(token)
    isFound ||= network !== null
    return network ?? token
  })
  return isFound ? networks : null
}

// The longest IPv6 address has 45 characters. The rest is for a zone or a port.
const MAX_TOKEN = 100

/** The network of a token, which may have a port, or a period or colon after it. Null if the token is not an address. */
function networkOfToken(token: string): string | null {
  const address = trimEnd(token, char => char === '.' || char === ':')
  if (address.length > MAX_TOKEN) return null
  // An IPv6 address may end in colons.
  return (token.length > MAX_TOKEN ? null : networkOf(withoutPort(token))) ?? networkOf(address)
}

function withoutPort(part: string): string {
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(part)?.[1] ?? part
}

// Enough for a list of a hundred addresses. Longer strings are prose.
const MAX_TEXT = 4_096

/**
 * Truncates or removes the addresses in the fields of a JSON text, at any depth. Everything else stays unchanged, to the digit.
 * Addresses in fields with other names are not found. For invalid JSON the result is undefined: it is rejected later.
 */
export function withoutAddresses(mode: IpMode, json: string): string {
  if (mode === 'keep') return json
  const parts: string[] = []
  let writtenTo = 0
  for (const { name, isUnderIp, from, to } of values(json)) {
    const naming = name === null ? null : namesAddress(name)
    if (!isUnderIp && naming === null) continue
    // 0xCB00714D and 3405803981 are also addresses.
    const isAll = mode === 'drop' && naming === 'wholly'
    const networks = isAll ? '' : to - from > MAX_TEXT ? null : cut(unquoted(json.slice(from, to)))
    if (networks === null) continue
    parts.push(json.slice(writtenTo, from), mode === 'drop' ? 'null' : JSON.stringify(networks))
    writtenTo = to
  }
  return writtenTo === 0 ? json : parts.join('') + json.slice(writtenTo)
}

/** A string (`from` and `to` include its quotes) or a number. `isUnderIp`: an enclosing object or list has the name of an address. */
type Value = { name: string | null; isUnderIp: boolean; from: number; to: number }
type Level = { isList: boolean; name: string | null; isUnderIp: boolean }

/** Scans only the structure and skips strings. Stops at JSON that is nested too deeply, which is rejected later. */
function* values(json: string): Generator<Value> {
  const levels: Level[] = []
  let level: Level = { isList: true, name: null, isUnderIp: false }
  let isName = false
  for (let i = 0; i < json.length; i++) {
    const char = json[i]
    if (char === '"') {
      const to = endOfString(json, i)
      if (isName) level.name = unquoted(json.slice(i, Math.min(to, i + 200)))
      else yield { name: level.name, isUnderIp: level.isUnderIp, from: i, to }
      i = to - 1
    } else if (char === '{' || char === '[') {
      if (levels.push(level) > MAX_DEPTH) return
      const naming = level.name === null ? null : namesAddress(level.name)
      const isUnderIp = level.isUnderIp || naming === 'wholly' || naming === 'strictly'
      // The items of a list have the name of the list.
      level = { isList: char === '[', name: char === '[' ? level.name : null, isUnderIp }
      isName = char === '{'
    } else if (char === '}' || char === ']') {
      level = levels.pop() ?? level
      isName = false
    } else if (char === ':') isName = false
    else if (char === ',') isName = !level.isList
    else if (char === '-' || (char! >= '0' && char! <= '9')) {
      NUMBER.lastIndex = i
      const to = i + (NUMBER.exec(json)?.[0].length ?? 0)
      // An invalid number stays unchanged and is rejected later.
      if (to > i) yield { name: level.name, isUnderIp: level.isUnderIp, from: i, to }
      i = Math.max(i, to - 1)
    }
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** The position after the closing quote, or the end of the text. */
function endOfString(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at > 0; at = json.indexOf('"', at + 1)) {
    let before = at - 1
    while (json[before] === '\\') before--
    if ((at - before) % 2 === 1) return at + 1
  }
  return json.length
}

function unquoted(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return JSON.parse(quoted) as string
  } catch {
    return quoted
  }
}

/** Truncates or removes the addresses in request headers. */
export function headersWithoutAddresses(mode: IpMode, headers: Record<string, string>): Record<string, string> {
  if (mode === 'keep') return headers
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const without = headerWithoutAddresses(mode, name, value)
    if (without !== null) kept[name] = without
  }
  return kept
}

/** The value as the tenant stores it. Null if it is omitted. `name` is in lower case. */
export function headerWithoutAddresses(mode: IpMode, name: string, value: string): string | null {
  if (mode === 'keep') return value
  if (name === 'forwarded') return null
  const networks = namesAddress(name) !== null || isOnlyAddresses(name, value) ? cut(value) : null
  if (networks !== null) return mode === 'truncate' ? networks : null
  return HOSTS_OR_VERSIONS.test(name) ? value : cutInProse(mode, name, value)
}

/** For proxy headers with any name. A version can also have four numbers. */
function isOnlyAddresses(name: string, value: string): boolean {
  return !name.includes('version') && value.split(',').every(part => isIP(withoutPort(part.trim())) > 0)
}

// The receiver of the request, not the sender.
const HOSTS_OR_VERSIONS = /(?:^|-)(?:host|origin|authority)$|version|^sec-ch-ua/

/**
 * Replaces addresses at the start of words. `Chrome/91.0.1.2` is a version, `http://203.0.113.77/` is an address.
 * A scan, because a pattern that looks behind every character cannot be checked for linear time.
 */
function cutInProse(mode: IpMode, name: string, value: string): string {
  const parts: string[] = []
  let writtenTo = 0
  for (let i = 0; i < value.length; i++) {
    if (!isAddressChar(value, i) || (i > 0 && isWordChar(value, i - 1))) continue
    let end = i + 1
    while (isAddressChar(value, end)) end++
    const isVersion = name === 'user-agent' && value[i - 1] === '/' && i > 1 && value[i - 2] !== '/'
    ZONE.lastIndex = end
    const token = value.slice(i, end) + (ZONE.exec(value)?.[0] ?? '')
    const network = isVersion || end - i < MIN_IN_PROSE ? null : networkOfToken(token)
    if (network !== null) {
      // `-` is valid in headers, which `kontor listen` forwards.
      parts.push(value.slice(writtenTo, i), mode === 'truncate' ? network : '-')
      writtenTo = i + token.length
    }
    i = Math.max(end, writtenTo) - 1
  }
  return parts.join('') + value.slice(writtenTo)
}

const MIN_IN_PROSE = 3
const ZONE = /%[\w.-]+/y

/** Hexadecimal digits, `.` and `:`. */
function isAddressChar(text: string, at: number): boolean {
  return /[\da-fA-F.:]/.test(text.charAt(at))
}

function isWordChar(text: string, at: number): boolean {
  return /[A-Za-z\d.:]/.test(text.charAt(at))
}
