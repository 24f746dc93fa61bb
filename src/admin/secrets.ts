import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Db } from '../postgres/database.ts'
import { sealedSecrets } from '../store/inbound/sources.ts'
import { AdminError } from './error.ts'

/** Encrypts secrets that must be readable later (signing secrets); all others are only hashed. */
export type Secrets = {
  seal(text: string): string
  /** Throws if none of the secret keys can decrypt it. */
  open(sealed: string): string
}

const FORMAT = 'v1'
const KEY_FILE = 'secret.key'
const MISSING =
  'Signing secrets need a secret key for encryption, and KONTOR_SECRET_KEY is not set. ' +
  'Create one with `openssl rand -hex 32` and set it on every server.'

/** The first key encrypts, all keys decrypt, so that a secret key can be replaced. Null: there is no key. */
export function openSecrets(keys: readonly Buffer[] | null): Secrets {
  return {
    seal(text) {
      const key = keys?.[0]
      if (!key) throw new AdminError('invalid', 'secret_key_missing', MISSING)
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return [FORMAT, ...[iv, cipher.getAuthTag(), data].map(part => part.toString('base64url'))].join('.')
    },
    open(sealed) {
      const [format, ...parts] = sealed.split('.')
      if (format !== FORMAT || parts.length !== 3) throw new Error('a sealed secret has an unknown format')
      if (!keys?.length) throw new Error(MISSING)
      const [iv, tag, data] = parts.map(part => Buffer.from(part, 'base64url')) as [Buffer, Buffer, Buffer]
      for (const key of keys) {
        const text = decrypt(key, iv, tag, data)
        if (text !== null) return text
      }
      throw new Error('a signing secret was encrypted with a different secret key than KONTOR_SECRET_KEY')
    },
  }
}

function decrypt(key: Buffer, iv: Buffer, tag: Buffer, data: Buffer): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 })
    decipher.setAuthTag(tag)
    return Buffer.concat([decipher.update(data), decipher.final()]).toString('utf8')
  } catch {
    return null
  }
}

/** The signing secrets of sources and destinations that none of the secret keys can decrypt. */
export async function listUndecryptableSecrets(db: Db, secrets: Secrets): Promise<{ ownerId: string }[]> {
  return (await sealedSecrets(db)).filter(({ sealed }) => {
    try {
      secrets.open(sealed)
      return false
    } catch {
      return true
    }
  })
}

type SecretKeyOptions = { secretKeys: Buffer[] | null; dataDir: string; isEmbedded: boolean }

/**
 * The configured keys. With the embedded PostgreSQL also the key in the data directory, which is created if there is no
 * other. Null: there is no key.
 */
export async function loadSecretKeys(from: SecretKeyOptions): Promise<Buffer[] | null> {
  if (from.isEmbedded && from.secretKeys === null) await storeSecretKeys(from.dataDir, [randomBytes(32)])
  return findSecretKeys(from)
}

/** The same without creating a key. */
export async function findSecretKeys(from: SecretKeyOptions): Promise<Buffer[] | null> {
  if (!from.isEmbedded) return from.secretKeys
  const keys = [...(from.secretKeys ?? []), ...(await readKeyFile(join(from.dataDir, KEY_FILE)))]
  return keys.length > 0 ? keys : null
}

/** One key per line; several after restoring a backup with several. */
async function readKeyFile(path: string): Promise<Buffer[]> {
  const text = await readFile(path, 'utf8').catch(nullIfMissing)
  if (text === null) return []
  const keys = text
    .trim()
    .split(/\s+/)
    .map(line => Buffer.from(line, 'hex'))
  if (keys.some(key => key.length !== 32))
    throw new Error(`${path} does not contain a secret key. Restore it from a backup.`)
  return keys
}

/**
 * Writes keys to the data directory, unless it has some. The file is written under another name and then linked, so it is
 * always complete, and the first of two writers wins.
 */
export async function storeSecretKeys(dataDir: string, keys: readonly Buffer[]): Promise<void> {
  const path = join(dataDir, KEY_FILE)
  if ((await readFile(path).catch(nullIfMissing)) !== null) return
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(keys.map(key => `${key.toString('hex')}\n`).join(''))
    await file.sync()
    await link(draft, path).catch(error => {
      if (error.code !== 'EEXIST') throw error
    })
  } finally {
    await file.close()
    await rm(draft, { force: true })
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
