import type { NormalizedEvent } from '../events/types.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { DAY_MS } from '../time.ts'

/** Longer URLs and campaign names are ignored. Browsers cut URLs before this length. */
const MAX_LENGTH = 4096

/** Where a visitor came from, according to one event. `direct`: the event has no source. */
type Touch = { source: string; medium: string | null; campaign: string | null; direct: boolean }

const DIRECT: Touch = { source: 'direct', medium: null, campaign: null, direct: true }

export const PAGE_VIEWS: ReadonlySet<string> = new Set(['page_view', 'pageview', 'page', 'screen'])

/**
 * Reads UTM parameters of the page or the event, else the host of an external referrer. A page view without either is
 * direct. Null for other events without either, because they say nothing about where the visitor came from.
 */
export function readTouch(event: NormalizedEvent): Touch | null {
  const { subject, context } = event
  const page = context && isObject(context.page) ? context.page : null
  const url = text(subject.page) ?? text(subject.url) ?? text(page?.url)
  return (
    readFields(subject) ??
    readQuery(url) ??
    readQuery(text(page?.url)) ??
    readQuery(text(page?.search)) ??
    readCampaign(context?.campaign) ??
    readReferrer(text(subject.referrer) ?? text(page?.referrer), url) ??
    (PAGE_VIEWS.has(event.eventType) ? DIRECT : null)
  )
}

/** Verified, or unverified with or without a source. A node has one touch of each kind. */
export type TouchKind = 'verified' | 'source' | 'direct'

export type DatedTouch = Touch & { kind: TouchKind; occurredAt: Date; receivedAt: Date; eventId: string }

/** The touch of an event. An unverified event that states a time more than a day before its receipt is none. */
export function touchOf(event: NormalizedEvent): DatedTouch | null {
  const { trusted: verified, occurredAt, receivedAt, id: eventId } = event
  if (!verified && receivedAt.getTime() - occurredAt.getTime() > DAY_MS) return null
  const touch = readTouch(event)
  return (
    touch && {
      ...touch,
      kind: verified ? 'verified' : touch.direct ? 'direct' : 'source',
      occurredAt,
      receivedAt,
      eventId,
    }
  )
}

/**
 * Whether `a` precedes `b`, which is of the same kind. Any touch with a source precedes a direct one. Unverified touches
 * are ordered by receipt, because anyone can state any time.
 */
export function isEarlierTouch(a: DatedTouch, b: DatedTouch): boolean {
  if (a.direct !== b.direct) return b.direct
  const [at, bt] = [touchTime(a), touchTime(b)]
  return at === bt ? a.eventId < b.eventId : at < bt
}

export function touchTime({ kind, occurredAt, receivedAt }: DatedTouch): number {
  return (kind === 'verified' ? occurredAt : receivedAt).getTime()
}

function readFields(fields: JsonObject): Touch | null {
  return campaignTouch(fields.utm_source, fields.utm_medium, fields.utm_campaign)
}

/** `context.campaign`, where SDKs put the UTM parameters under shorter names. */
function readCampaign(campaign: unknown): Touch | null {
  return isObject(campaign) ? campaignTouch(campaign.source, campaign.medium, campaign.name) : null
}

function readQuery(url: string | null): Touch | null {
  if (url === null || !url.includes('utm_source')) return null
  const from = url.indexOf('?')
  const to = url.indexOf('#', from)
  const query = new URLSearchParams(url.slice(from + 1, to < 0 ? undefined : to))
  return campaignTouch(query.get('utm_source'), query.get('utm_medium'), query.get('utm_campaign'))
}

function campaignTouch(source: unknown, medium: unknown, campaign: unknown): Touch | null {
  const name = text(source)
  return name === null ? null : { source: name, medium: text(medium), campaign: text(campaign), direct: false }
}

function readReferrer(referrer: string | null, url: string | null): Touch | null {
  const host = referrer && parseHost(referrer)
  if (!host || host === (url && parseHost(url))) return null
  return { source: host, medium: 'referral', campaign: null, direct: false }
}

/** Host of an absolute URL in lower case, without `www.`; null for anything else. */
function parseHost(url: string): string | null {
  const host = /^https?:\/\/(?:[^/?#@]*@)?(?:www\.)?([^/?#:@\s]+)/i.exec(url)?.[1]
  return host && host.length <= 255 ? host.toLowerCase() : null
}

function text(value: unknown): string | null {
  const trimmed = typeof value === 'string' ? value.trim() : ''
  return trimmed === '' || trimmed.length > MAX_LENGTH ? null : trimmed
}
