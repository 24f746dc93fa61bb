const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s

/**
 * The address of each host that it names, in their order: `postgres://u@one:1,two:2/db` is two of them. Undefined where PostgreSQL's own programs
 * would not take it, or `target_session_attrs` asks for a server that cannot be written to.
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

export function withoutPassword(text: string): string {
  const addresses = readDatabaseUrl(text)
  return addresses ? shownAddresses(addresses) : '(hidden)'
}

export function shownAddresses(addresses: string[]): string {
  const url = new URL(addresses[0]!)
  if (url.password !== '') url.password = 'hidden'
  for (const name of url.searchParams.keys()) if (/password/i.test(name)) url.searchParams.set(name, 'hidden')
  const [, before, , after] = PARTS.exec(url.href)!
  return before + addresses.map(address => new URL(address).host).join(',') + after
}
