import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import type { Account } from './account.ts'
import { type Binaries, run } from './binaries.ts'
import type { Home } from './home.ts'

const MiB = 1024 ** 2

export type Settings = Record<string, string>

type Machine = {
  memoryBytes: number
  freeDiskBytes: number
  /** Size of /dev/shm; null where the platform has none. */
  sharedMemoryBytes: number | null
  /** Whether this build of PostgreSQL can compress with LZ4. */
  hasLz4: boolean
}

/** Settings of the embedded PostgreSQL: durability first, then throughput of many small writes. */
export function settingsFor(machine: Machine): Settings {
  const { memoryBytes, freeDiskBytes, sharedMemoryBytes, hasLz4 } = machine
  return {
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',

    shared_buffers: megabytes(memoryBytes / 16, 64, 512),
    effective_cache_size: megabytes(memoryBytes / 2, 256, 64 * 1024),
    work_mem: '16MB',
    maintenance_work_mem: megabytes(memoryBytes / 32, 32, 256),
    max_connections: '100',
    max_locks_per_transaction: '256', // one query may lock hundreds of daily partitions

    // Infrequent checkpoints: after each one, the first write to a page logs the whole page.
    max_wal_size: megabytes(freeDiskBytes / 10, 512, 4096),
    min_wal_size: megabytes(freeDiskBytes / 40, 128, 1024),
    wal_buffers: '16MB',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: '0.9',
    ...(hasLz4 ? { wal_compression: 'lz4', default_toast_compression: 'lz4' } : {}),

    random_page_cost: '1.1',
    jit: 'off', // compilation takes longer than our short queries
    autovacuum_naptime: '15s',
    autovacuum_vacuum_scale_factor: '0.05',
    autovacuum_analyze_scale_factor: '0.05',
    autovacuum_vacuum_cost_limit: '1000',

    password_encryption: 'scram-sha-256',
    idle_in_transaction_session_timeout: '60s',
    client_connection_check_interval: '10s',
    timezone: 'UTC',
    // Containers often have 64 MB of /dev/shm, which is too small for parallel queries.
    ...(sharedMemoryBytes !== null && sharedMemoryBytes < 256 * MiB ? { dynamic_shared_memory_type: 'sysv' } : {}),

    logging_collector: 'off',
    log_destination: 'stderr',
    log_line_prefix: '%m [%p] ',
    log_timezone: 'UTC',
    log_statement: 'none',
    log_min_error_statement: 'panic', // statements contain customer data
    log_checkpoints: 'off',
    log_startup_progress_interval: '5s', // the start waits while recovery reports progress
  }
}

function megabytes(wantedBytes: number, least: number, most: number): string {
  return `${Math.round(Math.min(most, Math.max(least, wantedBytes / MiB)))}MB`
}

/** The configuration file: the settings that initdb detected, then ours. ALTER SYSTEM overrides both. */
export function settingsFile(initdbFile: string, settings: Settings): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${quoted(value)}`)
  return [
    '# Rewritten at every start. To change a setting permanently, use ALTER SYSTEM.',
    `include ${quoted(initdbFile)}`,
    ...lines,
    '',
  ].join('\n')
}

const quoted = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`

/** Quotes a directory for a list setting of PostgreSQL, so that a comma or space does not split it. */
export const asDirectoryList = (directory: string) => `"${directory.replaceAll('"', '""')}"`

/** Reads what the settings depend on, at every start: free disk space and container limits change. */
export async function inspectMachine(home: Home, account: Account | null, binaries: Binaries): Promise<Machine> {
  const [disk, sharedMemory, hasLz4] = await Promise.all([
    statfs(home.directory),
    process.platform === 'linux' ? statfs('/dev/shm').catch(() => ({ bsize: 0, blocks: 0 })) : null,
    canCompressWithLz4(home, account, binaries),
  ])
  const limit = process.constrainedMemory()
  return {
    memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem(),
    freeDiskBytes: disk.bsize * disk.bavail,
    sharedMemoryBytes: sharedMemory && sharedMemory.bsize * sharedMemory.blocks,
    hasLz4,
  }
}

/** `-C` prints a setting and exits (6 ms). It fails for a value that the build does not support. */
async function canCompressWithLz4(home: Home, account: Account | null, binaries: Binaries): Promise<boolean> {
  const args = ['-D', home.data, '-c', 'wal_compression=lz4', '-c', 'default_toast_compression=lz4']
  const { status } = await run(account, binaries.postgres, [...args, '-C', 'wal_compression'])
  return status === 0
}
