import { InvalidArgumentError } from '@commander-js/extra-typings'

type RateLimit = { events: number; per_seconds: number }

export function rateLimitOf(text: string): RateLimit {
  const [, events, seconds] = /^(\d{1,9})\/(\d{1,9})s?$/.exec(text.trim()) ?? []
  if (events === undefined)
    throw new InvalidArgumentError('Expected events/seconds, for example 100/60 for 100 events per minute.')
  return { events: Number(events), per_seconds: Number(seconds) }
}

/** `off` removes the limit. */
export function rateLimitOrOff(text: string): RateLimit | null {
  return text === 'off' ? null : rateLimitOf(text)
}
