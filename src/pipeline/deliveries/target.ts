import { messageId, signingKey } from '../../domain/destinations/destinations.ts'
import type { Destination } from '../../store/destinations/destinations.ts'
import type { Due } from '../../store/destinations/queue.ts'
import type { Target } from './send.ts'

type Opening = { open(sealed: string): string }

/** Throws where the master key does not open its secrets. */
export function targetOf(destination: Destination, secrets: Opening, now: Date): Target {
  const good = destination.secrets.filter(
    ({ expires_at }) => expires_at === null || new Date(expires_at) > now,
  )
  return {
    url: destination.url,
    keys: good.map(({ sealed }) => signingKey(secrets.open(sealed))),
    headers: headersOf(destination, secrets),
  }
}

export function headersOf({ headers }: Destination, secrets: Opening): Record<string, string> {
  return headers === null ? {} : JSON.parse(secrets.open(headers))
}

/** What is posted. */
export function bodyOf({ id, type, at, data }: Omit<Due, 'attempts'>): string {
  const facts = JSON.stringify({ id: messageId(id), type, timestamp: at })
  return `${facts.slice(0, -1)},"data":${data}}`
}
