import type { NormalizedEvent } from '../events/events.ts'
import { isObject, type JsonObject } from '../json/json.ts'

/** Longer URLs and campaign names are ignored. Browsers cut URLs before this length. */
const MAX_LENGTH = 4096

/** Where a visitor came from, according to one event. `direct`: the event has no source. */
type Touch = { source: string; medium: string | null; campaign: string | null; direct: boolean }

const DIRECT: Touch = { source: 'direct', medium: null, campaign: null, direct: true }

const PAGE_VIEWS = new Set(['page_view', 'pageview', 'page', 'screen'])

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

/** Whether `a` precedes `b`. Any touch with a source precedes a direct one. */
export function isEarlierTouch(a: DatedTouch, b: DatedTouch): boolean {
  if (a.direct !== b.direct) return b.direct
  const [at, bt] = [a.occurredAt.getTime(), b.occurredAt.getTime()]
  return at === bt ? a.eventId < b.eventId : at < bt
}

export type DatedTouch = Touch & { occurredAt: Date; eventId: string }

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
