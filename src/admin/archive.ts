import type pg from 'pg'
import { inTransaction } from '../postgres/database.ts'
import { archiveProgress, archiveState, saveArchiveState } from '../store/archive/archive.ts'
import { type Actor, SYSTEM } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError } from './error.ts'

type ArchiveView = {
  enabled: boolean
  url: string | null
  disabled_reason: string | null
  /** Rows that are in no file yet. */
  waiting: number
  files: number
  rows: number
  bytes: number
  last_written_at: string | null
  /** The current failure. */
  error: string | null
  failed_at: string | null
}

export async function archiveView(pool: pg.Pool): Promise<ArchiveView> {
  const { disabledReason, ...state } = await archiveState(pool)
  const { waiting, unwritten, files, rows, bytes, lastWrittenAt, failedAt, error } = await archiveProgress(pool)
  return {
    ...{ enabled: state.enabled, url: state.url, disabled_reason: disabledReason },
    ...{ waiting: waiting + unwritten, files, rows, bytes },
    last_written_at: lastWrittenAt?.toISOString() ?? null,
    error,
    failed_at: failedAt?.toISOString() ?? null,
  }
}

/**
 * Called at a start with KONTOR_ARCHIVE_URL. The first such start enables the archive. If an operator or a restore has
 * disabled it, it stays disabled. Returns whether it is enabled.
 */
export async function openArchive(pool: pg.Pool, url: string): Promise<boolean> {
  return inTransaction(pool, async tx => {
    const state = await archiveState(tx)
    const isNew = state.url === null
    if (state.url === url && !isNew) return state.enabled
    const enabled = isNew || state.enabled
    await saveArchiveState(tx, { ...state, enabled, url })
    const action = isNew ? 'archive.enable' : 'archive.update'
    await recordChange(tx, SYSTEM, {
      ...{ action, target: null, tenantId: null },
      before: { enabled: state.enabled, url: state.url },
      after: { enabled, url },
    })
    return enabled
  })
}

export async function switchArchive(pool: pg.Pool, actor: Actor, enabled: boolean): Promise<ArchiveView> {
  await inTransaction(pool, async tx => {
    const state = await archiveState(tx)
    if (enabled && state.url === null)
      throw new AdminError(
        'conflict',
        'archive_not_configured',
        'No server has run with KONTOR_ARCHIVE_URL yet. Set it and start a server; this enables the archive.',
      )
    await saveArchiveState(tx, { ...state, enabled, disabledReason: null })
    await recordChange(tx, actor, {
      ...{ action: enabled ? 'archive.enable' : 'archive.disable', target: null, tenantId: null },
      before: { enabled: state.enabled },
      after: { enabled },
    })
  })
  return archiveView(pool)
}
