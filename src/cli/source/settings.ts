import { InvalidArgumentError } from '@commander-js/extra-typings'
import { isObject, type JsonObject } from '../../domain/json/json.ts'

export const SETTINGS_NOTE = `
Settings for --config: name, enabled, preset, event_type_override, event_id_path, rate_limit, overflow, max_body_bytes,
require_timestamped_signature, require_event_id, billing, namespace, records, custom, headers, allowed_addresses.`

/** The value of --config. */
export function settingsOf(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new InvalidArgumentError(`Not valid JSON: ${(error as Error).message}`)
  }
  if (!isObject(value))
    throw new InvalidArgumentError('Expected a JSON object, for example {"overflow": "drop"}')
  return value
}
