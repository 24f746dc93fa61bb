import { isbot } from 'isbot'

/** Programs that forward events: their user agent says nothing about the visitor. */
const CLIENT_LIBRARY =
  /^(?:analytics-|rudder|jitsu|kontor|node\b|undici|axios|got\b|curl|wget|python|aiohttp|httpx|go-http-client|okhttp|java|ruby|faraday|php|guzzle|dart|postman|insomnia|apache-httpclient|libwww-perl|reqwest|bun\b|deno\b)/i

const known = new Map<string, boolean>()
const MAX_KNOWN = 2000
/** What is longer is judged by its beginning and not remembered: 2,000 of these stay below 2 MB. */
const MAX_LENGTH = 500

/** Whether a user agent is a crawler's or the like; remembered, since a list of 200 patterns is tried on it. */
export function isBot(userAgent: string): boolean {
  if (userAgent.length > MAX_LENGTH) return matchesBot(userAgent.slice(0, MAX_LENGTH))
  let bot = known.get(userAgent)
  if (bot === undefined) {
    bot = matchesBot(userAgent)
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(userAgent, bot)
  }
  return bot
}

function matchesBot(userAgent: string): boolean {
  return !CLIENT_LIBRARY.test(userAgent) && isbot(userAgent)
}
