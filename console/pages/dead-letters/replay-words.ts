import type { ReplayResult } from '../../api/types.ts'
import type { Outcome } from '../../components/notice.ts'
import { number, plural } from '../../format.ts'

/** What became of dead letters that were replayed. */
export function replayOutcome({
  replayed,
  applied,
  failed_again,
  waiting,
  remaining,
}: ReplayResult): Outcome {
  const parts = [
    `${number(applied)} applied`,
    failed_again > 0 && `${number(failed_again)} failed again`,
    waiting > 0 && `${number(waiting)} waiting`,
    remaining > 0 && `${number(remaining)} remaining`,
  ]
  const text = `${plural(replayed, 'dead letter')} replayed: ${parts.filter(Boolean).join(', ')}.`
  return { text, isBad: failed_again > 0 }
}
