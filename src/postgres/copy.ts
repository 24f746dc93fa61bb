import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { BinaryWriter } from './binary.ts'

/**
 * Sends rows with COPY in its binary format: PostgreSQL takes them as they are, where it would read text byte by byte.
 * `write` writes one value for each of the columns, in their order.
 */
export async function copyRows<Row>(
  client: pg.PoolClient,
  table: string,
  columns: readonly string[],
  rows: readonly Row[],
  write: (out: BinaryWriter, row: Row) => void,
): Promise<void> {
  const out = new BinaryWriter(spareBuffers.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES))
  out.bytes(HEADER)
  for (const row of rows) {
    out.rawInt2(columns.length)
    write(out, row)
  }
  out.rawInt2(-1)
  await send(client, `copy ${table} (${columns.join(', ')}) from stdin (format binary)`, out.written())
  // Not after a failure: what became of the bytes is not known then.
  const { buffer } = out
  if (spareBuffers.length < MAX_SPARE_BUFFERS && buffer.length <= MAX_SPARE_BYTES) spareBuffers.push(buffer)
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
// flags and the length of an extension: none
const HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)])

const FIRST_BYTES = 65_536
// Megabytes a second of short-lived buffers would keep the garbage collector busy.
const spareBuffers: Buffer[] = []
const MAX_SPARE_BUFFERS = 4
const MAX_SPARE_BYTES = 4_194_304

function send(client: pg.PoolClient, statement: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = client.query(copyFrom(statement))
    stream.on('error', reject)
    stream.on('finish', resolve)
    stream.end(bytes)
  })
}
