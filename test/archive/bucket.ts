import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// @ts-expect-error: it has no types
import S3rver from 's3rver'

/** An S3 server with one bucket named archive. */
export async function startBucket() {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-bucket-'))
  const server = new S3rver({
    ...{ address: '127.0.0.1', port: 0, silent: true, directory },
    configureBuckets: [{ name: 'archive' }],
  } as never)
  const { port } = (await server.run()) as { port: number }
  return {
    directory: join(directory, 'archive'),
    url: `http://127.0.0.1:${port}`,
    access: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    async names(): Promise<string[]> {
      const all = await readdir(join(directory, 'archive'), { recursive: true })
      return all.filter(name => name.endsWith('_object')).map(name => name.replace('._S3rver_object', ''))
    },
    async close() {
      await server.close()
      await rm(directory, { recursive: true })
    },
  }
}
