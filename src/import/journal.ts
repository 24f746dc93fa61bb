import { hash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Input } from './input.ts'

/** How far an import is: so many things were read and are settled, with what became of them. */
export type Progress = {
  read: number
  accepted: number
  duplicates: number
  rejected: number
  /** How long the errors file was then. */
  errorsBytes: number
}

export const NO_PROGRESS: Progress = { read: 0, accepted: 0, duplicates: 0, rejected: 0, errorsBytes: 0 }

/** What is kept beside the file while it is imported, so that the same command goes on where it was cut off. */
export type Journal = {
  load(): Promise<Progress | null>
  /** Now and then; `isLast`: now. */
  save(progress: Progress, isLast?: boolean): Promise<void>
  end(): Promise<void>
}

const NONE: Journal = { load: async () => null, save: async () => {}, end: async () => {} }
const SAVE_EVERY_MS = 1_000

/** `what`: all that makes it this import and not another one of the same file. */
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
        isWritable = false // the same file again still adds nothing: it only takes longer
      }
    },
    async end() {
      await rm(file, { force: true })
    },
  }
}
