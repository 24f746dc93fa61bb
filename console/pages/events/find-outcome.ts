import { events } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { EventOutcome } from '../../api/types.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** By the id here, else by the one that its sender gave it. */
export async function findOutcome(
  id: string,
  source: string,
  signal: AbortSignal,
): Promise<EventOutcome | null> {
  if (id === '') return null
  const found = UUID.test(id) && source === '' ? await nullOn(404, events.find(id, signal)) : null
  return found ?? nullOn(404, events.lookup({ event_id: id, source_config_id: source }, signal))
}
