import { setTimeout as sleep } from 'node:timers/promises'

export type Read = (path: string) => Promise<{ status: number; body: Record<string, unknown> }>

/** Reads through the public API, which has recovered. Retries a few times. */
export function reader(url: string, key: string): Read {
  return async path => {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(url + path, {
          headers: { authorization: `Bearer ${key}` },
          signal: AbortSignal.timeout(30_000),
        })
        const body = (await response.json()) as Record<string, unknown>
        if (response.status < 500 || attempt === 5) return { status: response.status, body }
      } catch (error) {
        if (attempt === 5) throw error
      }
      await sleep(500)
    }
  }
}

/** All rows of a list, by its cursor. */
export async function* pages<Row>(read: Read, path: string): AsyncGenerator<Row> {
  let cursor: string | null = null
  do {
    const next: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await read(`${path}${next}`)
    if (status !== 200) throw new Error(`${path} returned ${status}: ${JSON.stringify(body).slice(0, 300)}`)
    yield* body.results as Row[]
    cursor = body.next_cursor as string | null
  } while (cursor !== null)
}
