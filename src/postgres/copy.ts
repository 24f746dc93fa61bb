import { once } from 'node:events'
import type pg from 'pg'
import { BinaryWriter } from './binary.ts'

/** A column's type, and how to read its value from a row. */
export type Column<Row, Context> = { type: ColumnType; value: Value<Row, Context, unknown> }

/** `index` is the row's index in one copy, `context` a value that all its rows share. */
type Value<Row, Context, T> = (row: Row, index: number, context: Context) => T

type ColumnType = 'boolean' | 'int2' | 'int4' | 'int8' | 'timestamp' | 'uuid' | 'hex' | 'text' | 'bytea'

function defineColumn<T>(type: ColumnType) {
  return <Row, Context>(value: Value<Row, Context, T>): Column<Row, Context> => ({ type, value })
}

export const boolean = defineColumn<boolean>('boolean')
export const int2 = defineColumn<number>('int2')
export const int4 = defineColumn<number | null>('int4')
export const int8 = defineColumn<number | null>('int8')
export const timestamp = defineColumn<Date>('timestamp')
export const uuid = defineColumn<string | null>('uuid')
/** A UUID given as 32 hexadecimal digits, without dashes. */
export const hex = defineColumn<string>('hex')
export const text = defineColumn<string | null>('text')
export const bytea = defineColumn<Buffer | null>('bytea')

/** Copies rows, with the context that they share. */
export type Copy<Row, Context> = (
  client: pg.PoolClient,
  rows: readonly Row[],
  ...context: Context extends undefined ? [] : [Context]
) => Promise<void>

/**
 * Returns a function that copies rows into a table. It uses COPY's binary format, which PostgreSQL stores without parsing.
 */
export function copyTable<Row, Context = undefined>(
  table: string,
  columns: Record<string, Column<Row, Context>>,
  /** Selects the rows to copy. If it raises an error, nothing is copied. */
  { where }: { where?: string } = {},
): Copy<Row, Context> {
  const names = Object.keys(columns)
  const copy = `copy ${table} (${names.join(', ')}) from stdin (format binary)${where ? ` where ${where}` : ''}`
  const write = compile(Object.values(columns))
  return async (client, rows, ...context) => {
    let out = new BinaryWriter(spareBuffers.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES))
    let stream: CopyStream | null = null
    out.bytes(HEADER)
    for (let index = 0; index < rows.length; index++) {
      out.rawInt2(names.length)
      write(out, rows[index]!, index, context[0] as Context)
      if (out.length < PORTION_BYTES) continue
      stream ??= openStream(client, copy)
      await stream.write(out.written())
      out = new BinaryWriter(out.buffer)
    }
    out.rawInt2(-1)
    stream ??= openStream(client, copy)
    await stream.end(out.written())
    // Not after a failure: the socket may still use the buffer.
    const { buffer } = out
    if (spareBuffers.length < MAX_SPARE_BUFFERS && buffer.length <= MAX_SPARE_BYTES) spareBuffers.push(buffer)
  }
}

type Write<Row, Context> = (out: BinaryWriter, row: Row, index: number, context: Context) => void

/**
 * Generates one function that writes all columns of a row. A loop over the columns calls many different functions from one call
 * site, which is a third slower: 2.7 µs for a row of 17 columns, instead of 2.0 µs (2.1 µs if written by hand).
 */
function compile<Row, Context>(columns: Column<Row, Context>[]): Write<Row, Context> {
  const values = columns.map((_, i) => `value${i}`)
  const calls = columns.map(({ type }, i) => `out.${type}(value${i}(row, index, context))`)
  const source = `return (out, row, index, context) => { ${calls.join('; ')} }`
  return new Function(...values, source)(...columns.map(({ value }) => value))
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
// no flags, and an extension of length 0
const HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)])

const FIRST_BYTES = 65_536
// Buffers are reused: megabytes per second of short-lived buffers would keep the garbage collector busy.
const spareBuffers: Buffer[] = []
const MAX_SPARE_BUFFERS = 4
const MAX_SPARE_BYTES = 524_288

// Events that share a large context take a hundred times the size of their request. They are written in portions, so that
// memory never holds all of them at once. A portion of small rows fits into a buffer of MAX_SPARE_BYTES.
const PORTION_BYTES = 491_520

type CopyStream = { write(bytes: Buffer): Promise<void>; end(bytes: Buffer): Promise<void> }

/**
 * `write` resolves when the socket has accepted the bytes. They follow the statement immediately, which takes one round trip;
 * pg-copy-streams first waits until PostgreSQL is ready for them. PostgreSQL drops bytes that follow a failed statement.
 */
function openStream(client: pg.PoolClient, statement: string): CopyStream {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  done.catch(() => undefined)
  const submitted = Promise.withResolvers<void>()
  let socket: pg.Connection['stream'] | null = null
  const query = {
    // The driver replaces this when it sets a query timeout.
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

  /** Returns false if the socket's buffer is full. */
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

/** Sends everything that is written in this tick in one system call. */
function sendTogether(socket: pg.Connection['stream']): void {
  socket.cork()
  process.nextTick(() => socket.uncork())
}
