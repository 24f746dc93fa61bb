import { setTimeout as sleep } from 'node:timers/promises'
import { FileFault, type Row } from './row.ts'

const LISTS = ['subscriptions?status=all&', 'invoices?', 'refunds?']
const ATTEMPTS = 6
const FIRST_PAUSE_MS = 500

/** Reads Stripe's list endpoints page by page. */
export async function* stripeRows({ url, key }: { url: string; key: string }): AsyncGenerator<Row[]> {
  for (const list of LISTS) {
    for (let after = ''; ; ) {
      const { data, has_more } = await page(`${url}/v1/${list}limit=100${after}`, key)
      yield data.map(cells => ({ line: 0, cells, text: JSON.stringify(cells) }))
      if (!has_more || data.length === 0) break
      after = `&starting_after=${encodeURIComponent(String(data.at(-1)!.id))}`
    }
  }
}

type Page = { data: Record<string, unknown>[]; has_more: boolean }

async function page(url: string, key: string): Promise<Page> {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(url, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(60_000),
    }).catch((error: Error) => error)
    if (!(answer instanceof Error) && answer.ok) return (await answer.json()) as Page
    const mayPass = answer instanceof Error || answer.status === 429 || answer.status >= 500
    if (!mayPass || attempt === ATTEMPTS) throw new FileFault(await refusal(url, answer))
    await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1))
  }
}

async function refusal(url: string, answer: Response | Error): Promise<string> {
  const where = url.split('?')[0]
  if (answer instanceof Error) return `${where} did not respond: ${answer.message}`
  const body = (await answer.json().catch(() => null)) as { error?: { message?: string } } | null
  return `${where} answered ${answer.status}${body?.error?.message ? `: ${body.error.message}` : ''}.`
}
