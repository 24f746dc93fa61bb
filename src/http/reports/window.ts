import { Type } from 'typebox'
import { momentIn } from '../../domain/time-zone.ts'
import type { Window } from '../../reports/movements.ts'
import type { ReportQuestion } from '../../reports/question.ts'
import type { ReportQuery } from './query.ts'

const BEGINNING = new Date('0001-01-01T00:00:00Z')

/** `what`: of which those in the window are listed. */
export const WindowQuery = (what: string) => ({
  since: Type.Optional(Type.String({ format: 'timestamp', description: `${what} after this; default: all` })),
  until: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: 'Up to and including this, as_of at the latest; default: as_of',
    }),
  ),
})

export function windowOf({ asOf, policy }: ReportQuestion, { since, until }: ReportQuery): Window {
  const moment = (text: unknown) => momentIn(policy.timeZone, text)
  const to = moment(until) ?? asOf
  const last = earlier(to, asOf)
  return { since: earlier(moment(since) ?? BEGINNING, last), until: last }
}

const earlier = (a: Date, b: Date) => new Date(Math.min(a.getTime(), b.getTime()))
