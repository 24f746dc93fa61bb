// PostgreSQL's timestamps are microseconds since this moment.
const EPOCH_MS = Date.UTC(2000, 0, 1)
const TWO_TO_32 = 4_294_967_296
// Up to this length, a loop over the characters is faster than a call into native code.
const SHORT_TEXT = 48

/** Writes values in PostgreSQL's binary formats, each prefixed with its length. */
export class BinaryWriter {
  buffer: Buffer
  private at = 0

  constructor(buffer: Buffer) {
    this.buffer = buffer
  }

  get length(): number {
    return this.at
  }

  written(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  /** Writes no length prefix, like the next two methods. */
  bytes(value: Buffer): void {
    this.reserve(value.length)
    value.copy(this.buffer, this.at)
    this.at += value.length
  }

  rawInt2(value: number): void {
    this.reserve(2)
    this.put16(value)
  }

  rawInt4(value: number): void {
    this.reserve(4)
    this.put32(value)
  }

  null(): void {
    this.reserve(4)
    this.put32(-1)
  }

  boolean(value: boolean): void {
    this.reserve(5)
    this.put32(1)
    this.buffer[this.at++] = value ? 1 : 0
  }

  int2(value: number): void {
    this.reserve(6)
    this.put32(2)
    this.put16(value)
  }

  int4(value: number | null): void {
    if (value === null) {
      this.null()
      return
    }
    this.reserve(8)
    this.put32(4)
    this.put32(value)
  }

  int8(value: number | null): void {
    if (value === null) {
      this.null()
      return
    }
    this.reserve(12)
    this.put32(8)
    const high = Math.floor(value / TWO_TO_32)
    this.put32(high)
    this.put32(value - high * TWO_TO_32)
  }

  timestamp(value: Date): void {
    const ms = value.getTime() - EPOCH_MS
    // In two halves of 32 bits: microseconds after the year 2285 exceed 2^53.
    const highMs = Math.floor(ms / TWO_TO_32)
    const lowMicros = (ms - highMs * TWO_TO_32) * 1000
    const carry = Math.floor(lowMicros / TWO_TO_32)
    this.reserve(12)
    this.put32(8)
    this.put32(highMs * 1000 + carry)
    this.put32(lowMicros - carry * TWO_TO_32)
  }

  uuid(value: string | null): void {
    if (value === null) {
      this.null()
      return
    }
    this.reserve(20)
    this.put32(16)
    this.digits(value, 0, 8)
    this.digits(value, 9, 13)
    this.digits(value, 14, 18)
    this.digits(value, 19, 23)
    this.digits(value, 24, 36)
  }

  private digits(value: string, from: number, to: number): void {
    const { buffer } = this
    let { at } = this
    for (let i = from; i < to; i += 2)
      buffer[at++] = (DIGITS[value.charCodeAt(i)]! << 4) | DIGITS[value.charCodeAt(i + 1)]!
    this.at = at
  }

  /** A UUID given as 32 hexadecimal digits, without dashes. */
  hex(value: string): void {
    this.reserve(20)
    this.put32(16)
    this.at += this.buffer.write(value, this.at, 16, 'hex')
  }

  text(value: string | null): void {
    if (value === null) {
      this.null()
      return
    }
    const { length } = value
    // A UTF-16 unit becomes at most three bytes.
    this.reserve(4 + 3 * length)
    const start = this.at + 4
    let end = start
    if (length <= SHORT_TEXT) {
      const { buffer } = this
      for (let i = 0; i < length; i++) {
        const c = value.charCodeAt(i)
        if (c >= 0x80) {
          end = -1
          break
        }
        buffer[end++] = c
      }
    } else {
      end = -1
    }
    if (end === -1) end = start + this.buffer.write(value, start, 'utf8')
    this.put32(end - start)
    this.at = end
  }

  bytea(value: Buffer | null): void {
    if (value === null) {
      this.null()
      return
    }
    this.rawInt4(value.length)
    this.bytes(value)
  }

  private put16(value: number): void {
    const { buffer } = this
    buffer[this.at++] = value >> 8
    buffer[this.at++] = value
  }

  private put32(value: number): void {
    const { buffer } = this
    const { at } = this
    buffer[at] = value >>> 24
    buffer[at + 1] = value >>> 16
    buffer[at + 2] = value >>> 8
    buffer[at + 3] = value
    this.at = at + 4
  }

  private reserve(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.buffer.length, this.at + bytes))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }
}

/** Values of lower-case hexadecimal digits, indexed by character code. */
const DIGITS = new Uint8Array(128)
for (let value = 0; value < 16; value++) DIGITS[value.toString(16).charCodeAt(0)] = value

const INT4_OID = 23
const UUID_OID = 2950

/** A parameter of type int[]. The binary format saves both sides formatting and parsing a string. */
export function int4Array(values: readonly number[]): Buffer {
  return encodeArray(INT4_OID, values, 8, (out, value) => out.int4(value))
}

/** A parameter of type uuid[], from UUIDs given as 32 hexadecimal digits. */
export function hexArray(values: readonly string[]): Buffer {
  return encodeArray(UUID_OID, values, 20, (out, value) => out.hex(value))
}

function encodeArray<Value>(
  oid: number,
  values: readonly Value[],
  bytesEach: number,
  write: (out: BinaryWriter, value: Value) => void,
): Buffer {
  const out = new BinaryWriter(Buffer.allocUnsafe(20 + bytesEach * values.length))
  out.rawInt4(values.length > 0 ? 1 : 0)
  // contains no nulls
  out.rawInt4(0)
  out.rawInt4(oid)
  if (values.length > 0) {
    out.rawInt4(values.length)
    // the index of the first element
    out.rawInt4(1)
    for (const value of values) write(out, value)
  }
  return out.written()
}
