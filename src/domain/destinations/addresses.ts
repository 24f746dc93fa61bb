import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** Networks that destinations may not use. Otherwise a tenant could reach services that only this machine can reach. */
const PRIVATE_IPV4: [string, number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // shared by providers and their customers
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24], // to 6to4 relays
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

// The last five contain an arbitrary IPv4 address.
const PRIVATE_IPV6: [string, number][] = [
  ['::', 96], // unspecified, loopback, and IPv4 in an old spelling
  ['100::', 64],
  ['fc00::', 7],
  ['2001:db8::', 32], // for documentation
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
  ['2001::', 23], // Teredo and others
  ['2002::', 16], // 6to4
  ['64:ff9b::', 96], // NAT64
  ['64:ff9b:1::', 48],
  ['::ffff:0:0:0', 96], // translated
]

const privateIpv4 = createBlockList(PRIVATE_IPV4, 'ipv4')
const privateIpv6 = createBlockList(PRIVATE_IPV6, 'ipv6')

function createBlockList(networks: [string, number][], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [address, bits] of networks) list.addSubnet(address, bits, family)
  return list
}

/** Loopback, link-local and private networks, in every notation. Also true for text that is not an address. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.split('%', 1)[0]!.replace(/^\[(.*)\]$/, '$1')
  if (isIPv4(plain)) return privateIpv4.check(plain, 'ipv4')
  if (!isIPv6(plain)) return true
  // Canonical form of URLs: ::ffff:10.0.0.1 and 0:0:0:0:0:ffff:a00:1 are both ::ffff:a00:1.
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(canonical) ?? []
  if (high !== undefined && low !== undefined) return privateIpv4.check(toIpv4(high, low), 'ipv4')
  return privateIpv6.check(canonical, 'ipv6')
}

function toIpv4(high: string, low: string): string {
  const number = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16)
  return [24, 16, 8, 0].map(shift => (number >>> shift) & 255).join('.')
}

/** The address in a URL's host. Null if the host is a name. */
export function literalAddress(hostname: string): string | null {
  const plain = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIPv4(plain) || isIPv6(plain) ? plain : null
}

const MAILTO = 'mailto:'
// ASCII only, without quotes and comments: no character of such an address has a meaning in a header.
const MAIL_ADDRESS =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/
const MAX_MAIL_ADDRESS = 254
const MAX_MAILBOX = 64

export function isMailAddress(text: string): boolean {
  return text.length <= MAX_MAIL_ADDRESS && text.indexOf('@') <= MAX_MAILBOX && MAIL_ADDRESS.test(text)
}

export function isMailUrl(url: string): boolean {
  return url.startsWith(MAILTO)
}

/** The address of a mailto: URL. */
export function mailAddressOf(url: string): string {
  return url.slice(MAILTO.length)
}

const WITH_SCHEME = 'begins with https:// or mailto:, for example https://example.com/hooks'

/** What is wrong with the URL of a destination, completing "must …". Null if it is valid; DNS is not queried. */
export function validateDestinationUrl(text: string, { allowPrivate }: { allowPrivate: boolean }): string | null {
  if (isMailUrl(text))
    return isMailAddress(mailAddressOf(text)) ? null : 'contain one e-mail address, like mailto:ops@example.com'
  if (!URL.canParse(text) || text.length > 2_000) return `be a URL that ${WITH_SCHEME}`
  const { protocol, hostname, port, username, password } = new URL(text)
  if (protocol !== 'https:' && protocol !== 'http:') return `be a URL that ${WITH_SCHEME}`
  if (username !== '' || password !== '') return 'not contain a user or password: put them into a header'
  if (port === '0') return 'not use port 0'
  if (allowPrivate) return null
  if (protocol === 'http:') return 'begin with https:// (http only with KONTOR_ALLOW_PRIVATE_DESTINATIONS=true)'
  const address = literalAddress(hostname)
  const isLocal = /(^|\.)localhost\.?$/.test(hostname)
  return isLocal || (address !== null && isPrivateAddress(address)) ? PRIVATE : null
}

export const PRIVATE =
  'not point to a private network or to this machine (unless KONTOR_ALLOW_PRIVATE_DESTINATIONS=true)'
