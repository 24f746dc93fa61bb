import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../embedded-postgres/socket.ts'
import { eventually } from './eventually.ts'

const program = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find(existsSync)

type Pooler = { url: string; stop(): Promise<void> }

/** A PgBouncer in transaction mode in front of a database. If it is not installed, skips the test and returns null. */
export async function startPooler(t: TestContext, databaseUrl: string): Promise<Pooler | null> {
  if (!program) {
    const how = 'PgBouncer is not installed (apt-get install pgbouncer)'
    if (process.env.KONTOR_TEST_REQUIRE_ALL === '1') throw new Error(how)
    t.skip(how)
    return null
  }
  const directory = await mkdtemp(join(tmpdir(), 'kontor-pooler-'))
  await chmod(directory, 0o755)
  const port = await freePort()
  await writeFile(join(directory, 'pgbouncer.ini'), settings(new URL(databaseUrl), port), { mode: 0o644 })
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  const child = spawn(program, [join(directory, 'pgbouncer.ini')], { stdio: 'ignore', ...user })
  const ended = new Promise(resolve => child.on('exit', resolve))
  await reachable(port, child)
  return {
    url: `postgres://anyone@127.0.0.1:${port}/kontor`,
    async stop() {
      child.kill()
      await ended
      await rm(directory, { recursive: true })
    },
  }
}

function settings(url: URL, port: number): string {
  const target = {
    host: url.hostname || url.searchParams.get('host'),
    port: url.port,
    dbname: url.pathname.slice(1),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  }
  return `[databases]
kontor = ${Object.entries(target)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
`
}

async function reachable(port: number, child: ChildProcess): Promise<void> {
  await eventually('PgBouncer to listen', () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended with ${child.exitCode}`)
    return new Promise<boolean>(resolve => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      })
      socket.on('error', () => resolve(false))
    })
  })
}
