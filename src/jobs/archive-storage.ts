import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where files go. A file is there whole or not at all; one that is written again is the same. */
export type Storage = { put(path: string, bytes: Uint8Array): Promise<void> }

type S3Access = {
  endpoint: string | null
  region: string | null
  accessKeyId: string | null
  secretAccessKey: string | null
  sessionToken: string | null
}

export async function openStorage(url: string, s3: S3Access): Promise<Storage> {
  return url.startsWith('file:') ? fileStorage(fileURLToPath(url)) : s3Storage(new URL(url), s3)
}

/** Under another name first: whoever reads the directory sees whole files only. */
function fileStorage(root: string): Storage {
  return {
    async put(path, bytes) {
      const target = join(root, path)
      const draft = `${target}.partial`
      await mkdir(dirname(target), { recursive: true })
      const file = await open(draft, 'w')
      try {
        await file.writeFile(bytes)
        await file.sync()
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      } finally {
        await file.close()
      }
      await rename(draft, target)
      await syncDirectory(dirname(target))
    },
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  // Windows knows no such thing.
  await directory.sync().catch(() => {})
  await directory.close()
}

const PUT_TIMEOUT_MS = 120_000

/** One PUT a file, which S3 makes whole or not at all. */
async function s3Storage({ hostname: bucket, pathname }: URL, access: S3Access): Promise<Storage> {
  const { AwsClient } = await import('aws4fetch')
  const region = access.region ?? 'us-east-1'
  const client = new AwsClient({
    accessKeyId: access.accessKeyId ?? '',
    secretAccessKey: access.secretAccessKey ?? '',
    ...(access.sessionToken !== null && { sessionToken: access.sessionToken }),
    ...{ service: 's3', region, retries: 3 },
  })
  // With an endpoint of one's own the bucket stands in the path: names of machines seldom have it. Nor does a certificate
  // name a bucket that has dots.
  const endpoint = access.endpoint?.replace(/\/$/, '') ?? `https://s3.${region}.amazonaws.com`
  const isInPath = access.endpoint !== null || bucket.includes('.')
  const base = isInPath ? `${endpoint}/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`
  const prefix = pathname.replace(/^\/|\/$/g, '')
  return {
    async put(path, bytes) {
      const name = [prefix, path].filter(part => part !== '').join('/')
      const answer = await client.fetch(`${base}/${name.split('/').map(encodeURIComponent).join('/')}`, {
        ...{
          method: 'PUT',
          body: bytes as Uint8Array<ArrayBuffer>,
          signal: AbortSignal.timeout(PUT_TIMEOUT_MS),
        },
        headers: { 'content-type': 'application/vnd.apache.parquet' },
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`S3 answered ${answer.status}: ${text.slice(0, 300)}`)
    },
  }
}
