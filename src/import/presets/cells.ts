import type { JsonObject } from '../../domain/json/json.ts'
import { numberOf, timestampOf } from '../mapping.ts'

/** Reads the cells of a row by column name. An invalid cell is undefined. */
export function cellsIn(cells: JsonObject) {
  /** The first of these columns that has a value. */
  const text = (...columns: string[]): string | undefined => {
    for (const column of columns) {
      const value = cells[column]
      if (typeof value === 'string' && value.trim() !== '') return value.trim()
    }
    return undefined
  }
  return {
    text,
    number(...columns: string[]): unknown {
      const given = text(...columns)
      return given === undefined ? undefined : numberOf(given)
    },
    time(...columns: string[]): string | undefined {
      return timestampOf(text(...columns) ?? null)
    },
    boolean(...columns: string[]): boolean | undefined {
      const given = text(...columns)?.toLowerCase()
      return given === undefined ? undefined : ['true', 'yes', '1', 'active'].includes(given)
    },
    /** `a, b, c` */
    list(...columns: string[]): string[] | undefined {
      const items = text(...columns)
        ?.split(',')
        .map(item => item.trim())
        .filter(item => item !== '')
      return items && items.length > 0 ? items : undefined
    },
  }
}

export type Cells = ReturnType<typeof cellsIn>

/** Removes undefined fields. Returns undefined if nothing remains. */
export function present(fields: JsonObject): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Exports put an apostrophe before long numbers, so that spreadsheets do not round them. */
export function plainId(text: string | undefined): string | undefined {
  return text?.replace(/^'/, '')
}
