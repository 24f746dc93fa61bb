import { hash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Input } from './input.ts'

/** The progress of an import: the number of rows that are read and settled, and their outcomes. */
export type Progress = {
  read: number
  accepted: number
  duplicates: number
  rejected: number
  /** The length of the errors file at that point. */
  errorsBytes: number
}

export const NO_PROGRESS: Progress = { read: 0, accepted: 0, duplicates: 0, rejected: 0, errorsBytes: 0 }

/** The progress file beside the imported file. With it, the same command continues after an interruption. */
export type Journal = {
  load(): Promise<Progress | null>
  /** Writes at most once per second, unless `isLast`. */
  save(progress: Progress, isLast?: boolean): Promise<void>
  end(): Promise<void>
}

const NONE: Journal = { load: async () => null, save: async () => {}, end: async () => {} }
const SAVE_EVERY_MS = 1_000

/** `what`: the options that distinguish this import from other imports of the same file. */
export function openJournal({ path, bytes, time }: Input, what: unknown): Journal {
  if (path === null) return NONE
  const key = hash('sha256', JSON.stringify([path, bytes, time, what]), 'hex').slice(0, 12)
  const file = join(dirname(path), `.${basename(path)}.${key}.kontor-import`)
  let isWritable = true
  let savedAt = Number.NEGATIVE_INFINITY
  return {
    async load() {
      try {
        return { ...NO_PROGRESS, ...(JSON.parse(await readFile(file, 'utf8')) as Progress) }
      } catch {
        return null
      }
    },
    async save(progress, isLast = false) {
      if (!isWritable || (!isLast && performance.now() - savedAt < SAVE_EVERY_MS)) return
      savedAt = performance.now()
      try {
        await writeFile(`${file}~`, JSON.stringify(progress))
        await rename(`${file}~`, file)
      } catch {
        isWritable = false // without a journal, a repeated import adds nothing either, but takes longer
      }
    },
    async end() {
      await rm(file, { force: true })
    },
  }
}
