import { KontorError } from './error.ts'
import { type Query, randomId } from './http.ts'
import type {
  BatchRow,
  ListedRecord,
  Problem,
  RecordInput,
  RecordListOptions,
  RecordPath,
  RecordTarget,
  StoredRecord,
  WriteOptions,
  WriteResult,
} from './types.ts'

/** The result of one item of upsertMany. `index` counts over all batches. */
export type BatchItemResult =
  | (Pick<WriteResult, 'status' | 'warnings' | 'payloadMismatch'> &
      Required<Pick<BatchRow, 'index' | 'duplicate' | 'operationId'>> & { accepted: true; id: string })
  | {
      accepted: false
      index: number
      id: string
      errors: NonNullable<BatchRow['errors']>
      /** Set if the whole batch failed. */
      error?: KontorError
    }

/** Calls of the data API with the private key. */
export type Api = {
  get<Answer>(path: string, query?: Query): Promise<Answer>
  /** null if there is none. */
  find<Answer>(path: string, query?: Query): Promise<Answer | null>
  write<Answer>(
    method: 'POST' | 'DELETE',
    path: string,
    body: string,
    options: { waitS?: number | undefined },
  ): Promise<Answer>
}

export type Records = ReturnType<typeof openRecords>

type Item = { index: number; id: string; text: string | null; error: unknown }

const BATCH_ITEMS = 1_000
// half of the server's limit
const BATCH_BYTES = 4 * 1_048_576

export function openRecords(api: Api, path: RecordPath) {
  const entityType = path.slice('/v1/'.length, -1)

  function serialize(record: RecordInput | RecordTarget, idempotencyKey?: string): string {
    return JSON.stringify({
      sourceUpdatedAt: new Date(),
      ...record,
      entityType,
      // in the body, because a header cannot contain every printable character
      idempotencyKey: idempotencyKey ?? record?.idempotencyKey ?? randomId(),
    })
  }

  async function* batchesOf(records: Iterable<RecordInput> | AsyncIterable<RecordInput>) {
    let items: Item[] = []
    let bytes = 0
    let index = 0
    for await (const record of records) {
      const item = createItem(record, index++)
      const itemBytes = byteLength(item.text ?? '')
      if (items.length === BATCH_ITEMS || (items.length > 0 && bytes + itemBytes > BATCH_BYTES)) {
        yield items
        items = []
        bytes = 0
      }
      items.push(item)
      bytes += itemBytes
    }
    if (items.length > 0) yield items
  }

  function createItem(record: RecordInput, index: number): Item {
    const item = { index, id: record?.id, error: null }
    try {
      return { ...item, text: serialize(record) }
    } catch (error) {
      return { ...item, text: null, error }
    }
  }

  async function sendBatch(items: Item[], waitS: number | undefined): Promise<BatchItemResult[]> {
    const sent = items.filter(({ text }) => text !== null)
    if (sent.length === 0) return items.map(item => refused(item, item.error))
    try {
      const body = `{"records":[${sent.map(({ text }) => text).join()}]}`
      const { results } = await api.write<{ results: BatchItemResult[] }>('POST', `${path}/batch`, body, {
        waitS,
      })
      const answers = new Map(sent.map((item, position) => [item, results[position]!]))
      return items.map(item => {
        const answer = answers.get(item)
        return answer ? { ...answer, index: item.index, id: item.id } : refused(item, item.error)
      })
    } catch (error) {
      return items.map(item => refused(item, item.error ?? error))
    }
  }

  return {
    /** Creates or replaces a record. Resolves when the change is durable. */
    upsert(record: RecordInput, { idempotencyKey, waitS }: WriteOptions = {}): Promise<WriteResult> {
      return later(() => api.write('POST', path, serialize(record, idempotencyKey), { waitS }))
    },

    /**
     * Creates or replaces many records, up to 1,000 per request. Always yields one result per item, in order. If a whole batch
     * fails after all retries, each of its items has the error, and the next batch is sent. Throws only errors of `records`.
     */
    async *upsertMany(
      records: Iterable<RecordInput> | AsyncIterable<RecordInput>,
      { waitS }: Pick<WriteOptions, 'waitS'> = {},
    ): AsyncGenerator<BatchItemResult, void, undefined> {
      for await (const items of batchesOf(records)) yield* await sendBatch(items, waitS)
    },

    /** By `id` or `externalId`; products also by `data.sku` or `data.code`. Deleting a missing record is not an error. */
    delete(target: RecordTarget, { idempotencyKey, waitS }: WriteOptions = {}): Promise<WriteResult> {
      return later(() => api.write('DELETE', path, serialize(target, idempotencyKey), { waitS }))
    },

    /** null if there is none. Products are found by `data.sku`, or by `id` if no product has that SKU. */
    get<Data = Record<string, unknown>>(id: string): Promise<StoredRecord<Data> | null> {
      return later(() => api.find(`${path}/${segment(id)}`))
    },

    /** In the order of their last change. */
    list({
      updatedSince,
      includeDeleted,
      limit,
    }: RecordListOptions = {}): AsyncGenerator<ListedRecord, void, undefined> {
      return rows(api, path, { updated_since: updatedSince, include_deleted: includeDeleted }, limit)
    },
  }
}

/** The rows of a list. Pages are fetched as they are read. */
export async function* rows<Row>(
  api: Api,
  path: string,
  query: Query,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Row, void, undefined> {
  let cursor: string | undefined
  for (let left = limit; left > 0; ) {
    const page = await api.get<{ results: Row[]; next_cursor: string | null }>(path, {
      ...query,
      limit: Math.min(left, 100),
      cursor,
    })
    yield* page.results
    left -= page.results.length
    if (!page.next_cursor) return
    cursor = page.next_cursor
  }
}

/** Encodes an id for a path. `.` and `..` are impossible, because URL parsers resolve them. */
export function segment(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new TypeError(`The id ${JSON.stringify(id)} cannot be looked up.`)
  return encodeURIComponent(id)
}

/** Turns thrown errors into rejections, because callers only handle the promise. */
async function later<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  return call()
}

function refused({ index, id }: Item, cause: unknown): BatchItemResult {
  const error = cause instanceof KontorError ? cause : null
  const own: NonNullable<Problem['errors']> = [{ pointer: '', message: (cause as Error).message }]
  const errors = error && error.errors.length > 0 ? error.errors : own
  return { index, id, accepted: false, errors, ...(error && { error }) }
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
