import { seconds } from './faults/fault.ts'
import type { FaultNote } from './ledger.ts'
import type { Outcome } from './reconcile/outcomes.ts'
import type { Problem } from './reconcile/problems.ts'

const KINDS = ['missing', 'duplicate', 'unexpected', 'wrong', 'violation'] as const

/** Groups faults by outcome. Requests without an active fault count as calm. */
export function faultTable(faults: FaultNote[], outcomes: Outcome[], problems: Problem[]): string {
  const struckBy = (at: number | null) =>
    at === null ? 'unknown time' : (faults.find(({ from, until }) => at >= from && at <= until)?.name ?? 'calm')
  const sent = Map.groupBy(outcomes, ({ acknowledgedAt, firstSentAt }) => struckBy(acknowledgedAt ?? firstSentAt))
  const found = Map.groupBy(problems, ({ at }) => struckBy(at))
  const names = [...new Set([...faults.map(({ name }) => name), 'calm', ...found.keys()])]
  const head = ['fault', 'times', 'recovered', 'acknowledged', 'unclear', ...KINDS]
  const rows = names.map(name => {
    const own = faults.filter(fault => fault.name === name)
    const items = sent.get(name) ?? []
    const acknowledged = items.filter(({ acknowledgedAt }) => acknowledgedAt !== null).length
    const unclear = items.filter(outcome => outcome.acknowledgedAt === null && outcome.unclear > 0).length
    const kinds = KINDS.map(kind => (found.get(name) ?? []).filter(problem => problem.kind === kind).length)
    return [name, own.length || '', recovery(own), acknowledged, unclear, ...kinds].map(String)
  })
  return table([head, ...rows])
}

/** A one-line summary of the run. */
export function totals(faults: FaultNote[], outcomes: Outcome[], problems: Problem[]): string {
  const acknowledged = outcomes.filter(({ acknowledgedAt }) => acknowledgedAt !== null).length
  const unclear = outcomes.filter(outcome => outcome.acknowledgedAt === null && outcome.unclear > 0).length
  const of = (kind: Problem['kind']) => problems.filter(problem => problem.kind === kind).length
  return [
    `${outcomes.length} sent`,
    `${acknowledged} acknowledged`,
    `${unclear} unclear`,
    `${outcomes.length - acknowledged - unclear} rejected`,
    ...KINDS.map(kind => `${of(kind)} ${kind}`),
    `${of('stuck')} stuck`,
    `${faults.length} faults, ${faults.filter(({ recoveredAfterMs }) => recoveredAfterMs !== null).length} recovered`,
  ].join(', ')
}

function recovery(faults: FaultNote[]): string {
  if (faults.length === 0) return ''
  const times = faults.map(({ recoveredAfterMs }) => recoveredAfterMs)
  if (times.includes(null)) return 'NEVER'
  return `${seconds(Math.max(...(times as number[])))} s`
}

/** Aligns the first column left and all others right. */
export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows
    .map(row => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}

const SHOWN = 15

export function problemList(problems: Problem[]): string {
  return [...Map.groupBy(problems, ({ kind }) => kind)]
    .flatMap(([kind, own]) => [
      `${kind}: ${own.length}`,
      ...own.slice(0, SHOWN).map(({ words, at }) => `  ${at === null ? '' : `${clockTime(at)} `}${words}`),
      ...(own.length > SHOWN ? [`  … and ${own.length - SHOWN} more`] : []),
    ])
    .join('\n')
}

export const clockTime = (at: number) => new Date(at).toISOString().slice(11, 23)
