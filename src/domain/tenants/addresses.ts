import { BlockList, isIP } from 'node:net'

type Network = { address: string; bits: number; family: 'ipv4' | 'ipv6' }

/** Parses a network in CIDR notation or a single address. Null if invalid. */
export function cidrOf(text: string): Network | null {
  const [address = '', length, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || address.includes('%') || rest.length > 0) return null
  const most = version === 4 ? 32 : 128
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return null
  const bits = length === undefined ? most : Number(length)
  return bits > most ? null : { address, bits, family: version === 4 ? 'ipv4' : 'ipv6' }
}

/** Rejects ::ffff:10.0.0.0/8, which is all of IPv4: the first 96 bits are the same for every mapped address. */
function networkOf(text: string): Network | null {
  const network = cidrOf(text)
  return network && network.bits > 0 && network.bits < 96 && isMapped(network.address) ? null : network
}

/** The eight groups of an IPv6 address in any notation. */
export function groupsOf(address: string): number[] {
  // URL normalizes the address: short, in lower case, without dotted notation.
  const short = new URL(`http://[${address.split('%', 1)[0]}]`).hostname.slice(1, -1)
  const [front, back = []] = short.split('::').map(part => (part === '' ? [] : part.split(':')))
  const gap = new Array<string>(8 - front!.length - back.length).fill('0')
  return [...front!, ...gap, ...back].map(group => Number.parseInt(group, 16))
}

/** Whether it is an IPv4-mapped IPv6 address, in any notation. */
function isMapped(address: string): boolean {
  return isIP(address) === 6 && /^\[::ffff:[\da-f]+:[\da-f]+\]$/.test(new URL(`http://[${address}]`).hostname)
}

export function isNetwork(text: string): boolean {
  return networkOf(text) !== null
}

export const NETWORKS = 'a list of up to 100 addresses or networks, for example "203.0.113.7" or "10.0.0.0/8"'
export const MAX_NETWORKS = 100

// Keyed by the array, which stays the same object until the key or source changes.
const prepared = new WeakMap<readonly string[], BlockList>()

/** Whether an address is in one of the networks. An empty list allows every address. An invalid address is in no network. */
export function isAllowed(networks: readonly string[], address: string): boolean {
  if (networks.length === 0) return true
  const plain = address.split('%', 1)[0]!
  const version = isIP(plain)
  if (version === 0) return false
  let list = prepared.get(networks)
  if (!list) {
    list = new BlockList()
    for (const text of networks) {
      const network = networkOf(text)
      if (network) list.addSubnet(network.address, network.bits, network.family)
    }
    prepared.set(networks, list)
  }
  return list.check(plain, version === 4 ? 'ipv4' : 'ipv6')
}
