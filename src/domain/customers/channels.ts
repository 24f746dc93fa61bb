/** Marketing channels: rules that name the channel of an acquisition by its source, medium and campaign. */

import { isObject } from '../json/json.ts'

/**
 * All conditions that a rule has must match, each by any of its patterns. A pattern is compared without regard to case; `*`
 * at its start or end stands for any text.
 */
export type ChannelRule = { channel: string; source?: string[]; medium?: string[]; campaign?: string[] }

type Origin = { source: string; medium: string | null; campaign: string | null }

export const OTHER_CHANNEL = 'other'

const SEARCH_ENGINES =
  'google google.* *.google.* bing bing.com *.bing.com duckduckgo duckduckgo.com yahoo *.yahoo.com yahoo.* ecosia ecosia.org *.ecosia.org startpage.com *.startpage.com qwant.com *.qwant.com search.brave.com kagi.com baidu baidu.com *.baidu.com yandex yandex.* *.yandex.* naver.com *.naver.com'
const SOCIAL_NETWORKS =
  'facebook facebook.com *.facebook.com fb instagram instagram.com *.instagram.com ig linkedin linkedin.com *.linkedin.com lnkd.in twitter twitter.com *.twitter.com x x.com t.co reddit reddit.com *.reddit.com pinterest pinterest.* *.pinterest.com tiktok tiktok.com *.tiktok.com youtube youtube.com *.youtube.com youtu.be threads.net threads.com bsky.app *.bsky.app mastodon* snapchat snapchat.com xing xing.com *.xing.com news.ycombinator.com'

/** Apply after the rules of the tenant. The first rule that matches wins; without a match, the channel is `other`. */
const DEFAULT_CHANNEL_RULES: readonly ChannelRule[] = [
  { channel: 'email', medium: words('email e-mail e_mail newsletter mail') },
  { channel: 'email', source: words('email newsletter mail.* *.mail.* webmail.* outlook.live.com outlook.office.com') },
  { channel: 'social', medium: words('social *-social *_social *social social-* social_* sm') },
  { channel: 'social', source: words(SOCIAL_NETWORKS) },
  {
    channel: 'paid_search',
    medium: words('cpc ppc sem paidsearch paid-search paid_search paid'),
    source: words(SEARCH_ENGINES),
  },
  { channel: 'paid_search', medium: words('cpc ppc sem paidsearch paid-search paid_search') },
  { channel: 'organic_search', medium: words('organic seo') },
  { channel: 'organic_search', source: words(SEARCH_ENGINES), medium: ['referral'] },
  { channel: 'referral', medium: words('referral affiliate partner link') },
  { channel: 'direct', source: words('direct (direct)') },
]

function words(text: string): string[] {
  return text.split(' ')
}

/** `rules`: those of the tenant, which come first. Classifying takes time linear in the lengths of rules and origin. */
export function channelOf({ source, medium, campaign }: Origin, rules: readonly ChannelRule[] = []): string {
  const known = { source: source.toLowerCase(), medium: medium?.toLowerCase(), campaign: campaign?.toLowerCase() }
  const matches = (rule: ChannelRule) =>
    CONDITIONS.every(name => rule[name]?.some(pattern => matchesPattern(known[name], pattern)) ?? true)
  return (rules.find(matches) ?? DEFAULT_CHANNEL_RULES.find(matches))?.channel ?? OTHER_CHANNEL
}

const CONDITIONS = ['source', 'medium', 'campaign'] as const

/** `*` alone also matches a missing value; the empty pattern matches only a missing value. */
function matchesPattern(value: string | undefined, pattern: string): boolean {
  const isOpenStart = pattern.startsWith('*')
  const isOpenEnd = pattern.endsWith('*')
  const text = pattern.slice(isOpenStart ? 1 : 0, isOpenEnd ? -1 : undefined).toLowerCase()
  if (value === undefined) return text === ''
  if (isOpenStart && isOpenEnd) return value.includes(text)
  if (isOpenStart) return value.endsWith(text)
  if (isOpenEnd) return value.startsWith(text)
  return value === text
}

const MAX_RULES = 50
const MAX_PATTERNS = 50
const MAX_PATTERN_LENGTH = 100
const CHANNEL_NAME = /^[a-z][a-z0-9_]{0,39}$/

/** The form of the setting, for messages. */
export const CHANNEL_RULES_FORM =
  `a JSON list of at most ${MAX_RULES} rules, for example [{"channel":"partners","source":["*.partner.com"]}]. ` +
  `A rule has a channel (a-z, 0-9 and _) and lists of at most ${MAX_PATTERNS} patterns for the UTM source, medium or campaign`

/** Undefined: not a list of rules. A string is parsed as JSON, for the command line. */
export function parseChannelRules(value: unknown): ChannelRule[] | undefined {
  const given = typeof value === 'string' ? parseText(value) : value
  if (!Array.isArray(given) || given.length > MAX_RULES || !given.every(isRule)) return undefined
  return given
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRule(value: unknown): value is ChannelRule {
  if (!isObject(value)) return false
  const { channel, ...conditions } = value
  if (typeof channel !== 'string' || !CHANNEL_NAME.test(channel)) return false
  const given = Object.entries(conditions)
  return (
    given.length > 0 &&
    given.every(([name, patterns]) => CONDITIONS.some(known => known === name) && isPatternList(patterns))
  )
}

function isPatternList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_PATTERNS &&
    value.every(
      pattern =>
        typeof pattern === 'string' && pattern.length <= MAX_PATTERN_LENGTH && !pattern.slice(1, -1).includes('*'),
    )
  )
}
