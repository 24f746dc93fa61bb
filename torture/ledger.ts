import { createReadStream, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

export type EntityType = 'product' | 'contact' | 'order'

/** One sent item. Its unique marker identifies it in the stored data. */
export type Item = {
  marker: string
  /** An idempotency key or event id. */
  claim?: string
  /** A write of a record; versions of one record count up. */
  record?: { type: EntityType; id: string; version: number; deleted: boolean }
  /** An event, and the list that shows it. */
  row?: 'event' | 'conversion'
  /** The inbound source that it was posted to. */
  source?: string
  /** A state of a subscription in cents per month. */
  subscription?: { id: string; version: number; cents: number }
  /** Invalid: may be stored only as a dead letter. */
  invalid?: true
  /** Older than a retention: may be skipped. */
  old?: true
}

/** A request and its response. Status 0: no response. */
export type Attempt = {
  tenant: string
  sentAt: number
  items: Item[]
  status: number
  /** of record writes, by index */
  operations?: (string | null)[]
  /** indexes of rejected items in a partially accepted request */
  rejected?: number[]
}

export type FaultNote = { name: string; from: number; until: number; recoveredAfterMs: number | null }

type Line =
  | { op: 'send'; n: number; at: number; tenant: string; items: Item[] }
  | { op: 'answer'; n: number; status: number; operations?: (string | null)[]; rejected?: number[] }
  | { op: 'violation'; at: number; words: string }
  | ({ op: 'fault' } & FaultNote)

export type Ledger = ReturnType<typeof openLedger>

/** All requests and responses in an append-only file, which survives a kill of the writer. */
export function openLedger(path: string) {
  const file = openSync(path, 'a', 0o644)
  let count = 0
  let violations = 0
  const write = (line: Line) => writeSync(file, `${JSON.stringify(line)}\n`)
  return {
    path,
    /** Call it before the request is sent, and pass the number to answered(). */
    sent(tenant: string, items: Item[]): number {
      const n = ++count
      write({ op: 'send', n, at: Date.now(), tenant, items })
      return n
    },
    answered(n: number, answer: { status: number; operations?: (string | null)[]; rejected?: number[] }): void {
      write({ op: 'answer', n, ...answer })
    },
    /** Records a violation that no fault excuses: a wrong status, or an unexpected exit. */
    violation(words: string): void {
      // One defect may affect every request, so only the first thousand are recorded.
      if (++violations <= 1_000) write({ op: 'violation', at: Date.now(), words })
    },
    fault(note: FaultNote): void {
      write({ op: 'fault', ...note })
    },
  }
}

export type LedgerContent = {
  attempts: Attempt[]
  violations: { at: number; words: string }[]
  faults: FaultNote[]
}

export async function readLedger(path: string): Promise<LedgerContent> {
  const attempts: Attempt[] = []
  const content: LedgerContent = { attempts, violations: [], faults: [] }
  for await (const text of createInterface({ input: createReadStream(path) })) {
    const line = parsed(text)
    if (line?.op === 'send') attempts[line.n] = { tenant: line.tenant, sentAt: line.at, items: line.items, status: 0 }
    else if (line?.op === 'answer') {
      const { op, n, ...answer } = line
      Object.assign(attempts[n]!, answer)
    } else if (line?.op === 'violation') content.violations.push(line)
    else if (line?.op === 'fault') content.faults.push(line)
  }
  content.attempts = attempts.filter(attempt => attempt !== undefined)
  return content
}

/** The last line may be incomplete. */
function parsed(text: string): Line | null {
  try {
    return JSON.parse(text) as Line
  } catch {
    return null
  }
}
