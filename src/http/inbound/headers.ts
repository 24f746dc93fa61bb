import type { IncomingHttpHeaders } from 'node:http'
import type { Preset } from '../../domain/inbound/presets.ts'
import type { Source } from '../../store/inbound/sources.ts'

const ALWAYS = ['content-type', 'user-agent', 'x-request-id']
const MAX_LENGTH = 1_024

/** The headers that go with the event: the usual ones, those that the preset reads, and those that the source names. */
export function keptHeaders(
  headers: IncomingHttpHeaders,
  source: Source,
  preset: Preset | null,
  signatureHeader: string,
): Record<string, string> {
  const isCredential = (name: string) =>
    name === signatureHeader || name === 'authorization' || name === source.config.custom?.header
  const kept: Record<string, string> = {}
  for (const name of [...ALWAYS, ...(preset?.keepHeaders ?? []), ...source.config.headers]) {
    const value = headers[name]
    // Whatever the source's settings say, a credential is never kept.
    if (value === undefined || isCredential(name)) continue
    kept[name] = String(value).slice(0, MAX_LENGTH)
  }
  return kept
}
