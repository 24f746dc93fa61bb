import type pg from 'pg'
import { connectTo } from './access.ts'
import { type KnownStream, listCursors } from './cursors.ts'
import { lagOf } from './scan.ts'
import type { NatsAccess, NatsSettings } from './settings.ts'
import { infoOf } from './stream.ts'

/** How many entries of a stream nobody has processed; null: NATS does not answer there. */
export async function unreadIn(
  pool: pg.Pool,
  known: KnownStream,
  nats: NatsSettings | null,
): Promise<number | null> {
  const access = nats?.access ?? withoutCredentials(known.servers)
  const connected = await connectTo(access, 'kontor').catch(() => null)
  if (connected === null) return null
  try {
    const info = await infoOf(connected, known.name)
    if (info === null) return 0
    let unread = 0
    for (const cursor of await listCursors(pool, known.name))
      unread += (await lagOf(connected, known.name, cursor)).entries
    return unread
  } catch {
    return null
  } finally {
    await connected.connection.close()
  }
}

function withoutCredentials(servers: string): NatsAccess {
  const nobody = { user: null, password: null, token: null, credentialsFile: null }
  return { servers: servers.split(','), tls: false, ...nobody }
}
