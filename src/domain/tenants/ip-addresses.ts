import { isIP } from 'node:net'
import { groupsOf } from './addresses.ts'

/** What becomes of the IP addresses that come in with events, before anything is written. */
export const IP_MODES = ['keep', 'truncate', 'drop'] as const
export type IpMode = (typeof IP_MODES)[number]

export function isIpMode(text: string): text is IpMode {
  return (IP_MODES as readonly string[]).includes(text)
}

/** The address as the tenant keeps it; null where it keeps none, and for what cannot be read. */
export function keptAddress(mode: IpMode, address: string | null): string | null {
  if (mode === 'keep' || address === null) return address
  return mode === 'drop' ? null : networkOf(address)
}

/** 203.0.113.7 → 203.0.113.0, 2001:db8:1:2::3 → 2001:db8:1:: */
function networkOf(text: string): string | null {
  const address = text.trim().split('%', 1)[0]!
  const version = isIP(address)
  if (version === 4) return address.replace(/\d+$/, '0')
  return version === 6 ? networkOfV6(address) : null
}

function networkOfV6(address: string): string {
  const groups = groupsOf(address)
  // Addresses of IPv4 in another spelling have all of it where others have their host.
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  if (isMapped) return `${groups[6]! >> 8}.${groups[6]! & 255}.${groups[7]! >> 8}.0`
  // 6to4: the IPv4 address is bits 16 to 48.
  if (groups[0] === 0x2002) groups[2]! &= 0xff00
  const kept = groups.slice(0, 3)
  const text = `${kept.map(group => group.toString(16)).join(':')}::`
  return new URL(`http://[${text}]`).hostname.slice(1, -1)
}

/** A field whose name says that it holds an address: `ip`, `browser_ip`, `ipAddress`, `x-forwarded-for`. */
function namesAddress(field: string): boolean {
  const words = field
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  if (words.some(word => ADDRESS_WORDS.has(word))) return true
  return ADDRESS_NAMES.has(words.join('_'))
}
const ADDRESS_WORDS = new Set(['ip', 'ips', 'ipv4', 'ipv6', 'ipaddress', 'ipaddr', 'remoteip', 'clientip'])
const ADDRESS_NAMES = new Set(['remote_addr', 'remote_address', 'x_forwarded_for', 'forwarded_for'])

// A name and a text of nothing but addresses. Quotes inside of texts are escaped, so it begins and ends at real ones.
const FIELD = /"([^"\\]{1,64})"(\s*:\s*)"([\da-fA-F.:,\s]{2,400})"/g

/**
 * JSON text without the addresses that its fields hold, whatever their depth; the rest stays as it was written, to the
 * digit. What stands elsewhere in a text is not found.
 */
export function withoutAddresses(mode: IpMode, json: string): string {
  if (mode === 'keep') return json
  return json.replace(FIELD, (whole, name: string, colon: string, value: string) => {
    const parts = value.split(',').map(part => part.trim())
    if (!namesAddress(name) || parts.some(part => isIP(withoutPort(part)) === 0)) return whole
    if (mode === 'drop') return `"${name}"${colon}null`
    return `"${name}"${colon}"${parts.map(part => networkOf(withoutPort(part))).join(', ')}"`
  })
}

function withoutPort(part: string): string {
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(part)?.[1] ?? part
}

/** Request headers without addresses: what proxies add is cut or left out. */
export function headersWithoutAddresses(
  mode: IpMode,
  headers: Record<string, string>,
): Record<string, string> {
  if (mode === 'keep') return headers
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (name === 'forwarded') continue
    if (!namesAddress(name)) kept[name] = value
    else if (mode === 'truncate') {
      const networks = value.split(',').map(part => networkOf(withoutPort(part.trim())))
      if (networks.every(network => network !== null)) kept[name] = networks.join(', ')
    }
  }
  return kept
}
