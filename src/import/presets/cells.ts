import type { JsonObject } from '../../domain/json/json.ts'
import { numberOf, timestampOf } from '../mapping.ts'

/** The cells of a row of a shop's export, read by the names of their columns; a cell that is not what it should be is no value. */
export function cellsIn(cells: JsonObject) {
  /** The first of these columns that is there. */
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

/** An object without what is not there; undefined where nothing is. */
export function present(fields: JsonObject): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Spreadsheets are kept from rounding a long number by an apostrophe before it. */
export function plainId(text: string | undefined): string | undefined {
  return text?.replace(/^'/, '')
}
