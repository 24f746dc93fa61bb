import type { AppliedMigration } from '../../postgres/migrate.ts'
import type { SequenceValue, StoredTable } from '../../postgres/tables.ts'
import { type BackupReader, openBackupFile } from './file.ts'

/** The first block of a backup: what is needed to make the tables before their rows come. */
export type Header = {
  /** of the Kontor that made it */
  version: string
  /** the version of PostgreSQL, as a number: 180001 */
  postgres: number
  taken_at: string
  migrations: AppliedMigration[]
  tables: StoredTable[]
  sequences: SequenceValue[]
  /** The master keys, as hex; only where they were wanted. */
  secret_keys?: string[]
}

/** The last block: what turned out to be in it. */
export type Footer = {
  tenants: number
  records: number
  events: number
  /** Rows by table. */
  rows: Record<string, number>
}

/** Before the rows of a table. */
export type TableStart = { name: string }

export type BackupSummary = {
  file: string
  bytes: number
  tenants: number
  records: number
  events: number
  taken_at: string
  version: string
}

export type Backup = BackupReader<Header, Footer>
export const openBackup = (path: string): Promise<Backup> => openBackupFile<Header, Footer>(path)

export function summaryOf({ path, bytes, header, footer }: Omit<Backup, 'blocks' | 'close'>): BackupSummary {
  const { tenants, records, events } = footer
  const { taken_at, version } = header
  return { file: path, bytes, tenants, records, events, taken_at, version }
}

/** Told now and then how far it is: bytes of the whole, and what is being worked on. */
export type Progress = (done: { bytes: number; ofBytes: number; what: string }) => void

/** Reads every byte and compares it with what was written. */
export async function verifyBackup(path: string, progress: Progress): Promise<BackupSummary> {
  const backup = await openBackup(path)
  try {
    let bytes = 0
    let what = ''
    const onRead = (more: number) => {
      bytes += more
      progress({ bytes, ofBytes: backup.bytes, what })
    }
    for await (const block of backup.blocks(onRead))
      if (block.kind === 'table') what = (JSON.parse(block.bytes.toString()) as TableStart).name
    return summaryOf(backup)
  } finally {
    await backup.close()
  }
}
