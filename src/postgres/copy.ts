import { once } from 'node:events'
import type pg from 'pg'
import { BinaryWriter } from './binary.ts'

/** A kind of value that the writer knows, and where a row has it. */
export type Column<Row, Context> = { type: ColumnType; value: Value<Row, Context, unknown> }

/** `index` counts the rows of one copy; `context` is what it was given for all of them. */
type Value<Row, Context, T> = (row: Row, index: number, context: Context) => T

type ColumnType = 'boolean' | 'int2' | 'int4' | 'int8' | 'timestamp' | 'uuid' | 'hex' | 'text'

function columnOf<T>(type: ColumnType) {
  return <Row, Context>(value: Value<Row, Context, T>): Column<Row, Context> => ({ type, value })
}

export const boolean = columnOf<boolean>('boolean')
export const int2 = columnOf<number>('int2')
export const int4 = columnOf<number>('int4')
export const int8 = columnOf<number | null>('int8')
export const timestamp = columnOf<Date>('timestamp')
export const uuid = columnOf<string | null>('uuid')
/** A uuid written as 32 digits, without dashes. */
export const hex = columnOf<string>('hex')
export const text = columnOf<string | null>('text')

/** Sends rows, and with them what they share. */
export type Copy<Row, Context> = (
  client: pg.PoolClient,
  rows: readonly Row[],
  ...context: Context extends undefined ? [] : [Context]
) => Promise<void>

/**
 * A table that rows are copied into: each column by its name, with its type and where its value comes from. COPY in its
 * binary format: PostgreSQL takes the bytes as they are, where it would read text byte by byte.
 */
export function copyTable<Row, Context = undefined>(
  table: string,
  columns: Record<string, Column<Row, Context>>,
  /** A statement without a result that goes ahead of the rows; if it fails, nothing is copied. */
  { before }: { before?: (context: Context) => string } = {},
): Copy<Row, Context> {
  const names = Object.keys(columns)
  const copy = `copy ${table} (${names.join(', ')}) from stdin (format binary)`
  const write = compile(Object.values(columns))
  return async (client, rows, ...context) => {
    let out = new BinaryWriter(spareBuffers.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES))
    let stream: CopyStream | null = null
    const statement = before ? `${before(context[0] as Context)}; ${copy}` : copy
    out.bytes(HEADER)
    for (let index = 0; index < rows.length; index++) {
      out.rawInt2(names.length)
      write(out, rows[index]!, index, context[0] as Context)
      if (out.length < PORTION_BYTES) continue
      stream ??= openStream(client, statement)
      await stream.write(out.written())
      out = new BinaryWriter(Buffer.allocUnsafeSlow(FIRST_BYTES))
    }
    out.rawInt2(-1)
    stream ??= openStream(client, statement)
    await stream.end(out.written())
    // Not after a failure: what became of the bytes is not known then.
    const { buffer } = out
    if (spareBuffers.length < MAX_SPARE_BUFFERS && buffer.length <= MAX_SPARE_BYTES) spareBuffers.push(buffer)
  }
}

type Write<Row, Context> = (out: BinaryWriter, row: Row, index: number, context: Context) => void

/**
 * One function for all columns of a row, as one would write it by hand. A loop over the columns calls so many different
 * functions from one place that a row of 17 takes a quarter longer (2.7 µs for 2.1 µs, this way 2.0 µs).
 */
function compile<Row, Context>(columns: Column<Row, Context>[]): Write<Row, Context> {
  const values = columns.map((_, i) => `value${i}`)
  const calls = columns.map(({ type }, i) => `out.${type}(value${i}(row, index, context))`)
  const source = `return (out, row, index, context) => { ${calls.join('; ')} }`
  return new Function(...values, source)(...columns.map(({ value }) => value))
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
// flags and the length of an extension: none
const HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)])

const FIRST_BYTES = 65_536
// Megabytes a second of short-lived buffers would keep the garbage collector busy.
const spareBuffers: Buffer[] = []
const MAX_SPARE_BUFFERS = 4
const MAX_SPARE_BYTES = 4_194_304

// Events with a large context they share are a hundred times what came in: they never stand in memory all at once.
const PORTION_BYTES = 4_194_304

type CopyStream = { write(bytes: Buffer): Promise<void>; end(bytes: Buffer): Promise<void> }

/**
 * `write` resolves when the bytes are on their way. They follow the statement at once: one round trip, where pg-copy-streams
 * waits for PostgreSQL to answer that it is ready for them. Bytes behind a statement that fails are dropped there.
 */
function openStream(client: pg.PoolClient, statement: string): CopyStream {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  done.catch(() => undefined)
  const submitted = Promise.withResolvers<void>()
  let socket: pg.Connection['stream'] | null = null
  const query = {
    // The driver puts the end of its time limit here.
    callback() {},
    submit(connection: pg.Connection) {
      socket = connection.stream
      sendTogether(socket)
      connection.query(statement)
      submitted.resolve()
    },
    handleCopyInResponse() {},
    handleCommandComplete() {},
    handleReadyForQuery() {
      query.callback()
      resolve()
    },
    handleError(error: unknown) {
      query.callback()
      reject(error)
    },
  }
  client.query(query)

  /** False: the socket has enough for now. */
  async function send(bytes: Buffer, ...more: Buffer[]): Promise<boolean> {
    if (socket === null) await Promise.race([submitted.promise, done])
    const head = Buffer.from(COPY_DATA)
    head.writeUInt32BE(bytes.length + LENGTH_BYTES, 1)
    sendTogether(socket!)
    return [head, bytes, ...more].map(part => socket!.write(part)).at(-1)!
  }
  return {
    async write(bytes) {
      if (!(await send(bytes))) await Promise.race([once(socket!, 'drain'), done])
    },
    async end(bytes) {
      await send(bytes, COPY_DONE)
      await done
    },
  }
}

const LENGTH_BYTES = 4
const COPY_DATA = Buffer.from(['d'.charCodeAt(0), 0, 0, 0, 0])
const COPY_DONE = Buffer.from(['c'.charCodeAt(0), 0, 0, 0, LENGTH_BYTES])

/** What is written until then goes in one call. */
function sendTogether(socket: pg.Connection['stream']): void {
  socket.cork()
  process.nextTick(() => socket.uncork())
}
