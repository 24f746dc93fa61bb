import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

export const MIN_PASSWORD_LENGTH = 10
/** Longer input would only cost time. */
export const MAX_PASSWORD_LENGTH = 500

/** OWASP's recommendation: 32 MiB and about 0.15 s of processor time per attempt. */
const COST = { N: 2 ** 15, r: 8, p: 3 }
const KEY_BYTES = 32

/** The stored form: `scrypt$N$r$p$salt$key`. The parameters are part of it, so that they can be raised later. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const key = await derive(password, salt, COST)
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), key.toString('base64')].join('$')
}

/** Compares in constant time. Without a stored hash it takes as long, so that the time does not reveal which users exist. */
export async function verifyPassword(password: string, stored: string | null): Promise<boolean> {
  const [, n, r, p, salt = '', key = ''] = (stored ?? NO_PASSWORD).split('$')
  const expected = Buffer.from(key, 'base64')
  const found = await derive(password, Buffer.from(salt, 'base64'), { N: Number(n), r: Number(r), p: Number(p) })
  return timingSafeEqual(found, expected) && stored !== null
}

const NO_PASSWORD = [
  'scrypt',
  COST.N,
  COST.r,
  COST.p,
  'AAAAAAAAAAAAAAAAAAAAAA==',
  Buffer.alloc(KEY_BYTES).toString('base64'),
].join('$')

let running = 0
const waiting: (() => void)[] = []
/** Each uses 32 MiB and a thread of the pool that also serves files and DNS. */
const AT_A_TIME = 2

async function derive(password: string, salt: Buffer, cost: typeof COST): Promise<Buffer> {
  if (running >= AT_A_TIME) await new Promise<void>(resolve => waiting.push(resolve))
  else running++
  try {
    return await new Promise((resolve, reject) => {
      const options = { ...cost, maxmem: 256 * cost.N * cost.r }
      scrypt(password.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) =>
        error ? reject(error) : resolve(key),
      )
    })
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}
