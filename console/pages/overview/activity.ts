import { deadLetters, inbound } from '../../api/admin.ts'
import { conversions, events, records } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type {
  Backlog,
  Conversion,
  DeadLetter,
  Event,
  List,
  Rejection,
  StoredRecord,
} from '../../api/types.ts'
import { isAdmin, tenant } from '../../session.ts'

/** As many as one request brings: what has more is shown as "100+". */
export const AT_MOST = 100
const LATEST = 8
const DAY_MS = 86_400_000

/** What changes when something comes in. null: the key may not see it. */
type News = {
  events: List<Event> | null
  conversions: List<Conversion> | null
  deadLetters: DeadLetter[] | null
}

export type Activity = News & {
  /** Of the last 24 hours. */
  recentEvents: List<Event> | null
  recentConversions: List<Conversion> | null
  rejections: Rejection[] | null
  backlogs: Backlog[] | null
  products: List<StoredRecord> | null
  contacts: List<StoredRecord> | null
  orders: List<StoredRecord> | null
}

export async function readActivity(signal: AbortSignal): Promise<Activity> {
  const since = new Date(Date.now() - DAY_MS).toISOString()
  const recent = { since, limit: AT_MOST }
  const many = { limit: AT_MOST }
  const [news, recentEvents, recentConversions, products, contacts, orders, backlogs, rejections] =
    await Promise.all([
      readNews(signal),
      nullOn(403, events.list(recent, signal)),
      nullOn(403, conversions.list(recent, signal)),
      nullOn(403, records.list('products', many, signal)),
      nullOn(403, records.list('contacts', many, signal)),
      nullOn(403, records.list('orders', many, signal)),
      forAdmins(() => inbound.backlogs(signal)),
      forAdmins(() => inbound.rejections({ tenant: tenant.peek(), limit: AT_MOST }, signal)),
    ])
  return {
    ...news,
    ...{ recentEvents, recentConversions, products, contacts, orders, backlogs },
    rejections: rejections?.filter(({ rejected_at }) => rejected_at > since) ?? null,
  }
}

/** The activity as it is now; the one before where nothing has come in, which costs three small requests. */
export async function followed(before: Activity, signal: AbortSignal): Promise<Activity> {
  return markOf(await readNews(signal)) === markOf(before) ? before : readActivity(signal)
}

async function readNews(signal: AbortSignal): Promise<News> {
  const [newestEvents, newestConversions, letters] = await Promise.all([
    nullOn(403, events.list({ limit: LATEST }, signal)),
    nullOn(403, conversions.list({ limit: LATEST }, signal)),
    forAdmins(() => deadLetters.list({ tenant: tenant.peek(), limit: AT_MOST }, signal)),
  ])
  return { events: newestEvents, conversions: newestConversions, deadLetters: letters }
}

function markOf(news: News): string {
  const lists = [news.events?.results, news.conversions?.results, news.deadLetters]
  return JSON.stringify(lists.map(list => list?.map(({ id }) => id)))
}

async function forAdmins<Row>(read: () => Promise<List<Row>>): Promise<Row[] | null> {
  return isAdmin.peek() ? (await read()).results : null
}
