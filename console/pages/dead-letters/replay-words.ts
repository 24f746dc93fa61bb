import type { ReplayResult } from '../../api/types.ts'
import { number, plural } from '../../format.ts'

/** What became of dead letters that were replayed. */
export function replayWords({ replayed, applied, failed_again, waiting, remaining }: ReplayResult): string {
  const parts = [
    `${number(applied)} applied`,
    failed_again > 0 && `${number(failed_again)} failed again`,
    waiting > 0 && `${number(waiting)} still to be processed`,
    remaining > 0 && `${number(remaining)} left`,
  ]
  return `${plural(replayed, 'dead letter')} replayed: ${parts.filter(Boolean).join(', ')}.`
}
