/** A process that writes the archive repeatedly until it is killed. DATABASE_URL, ARCHIVE_URL and S3_ENDPOINT configure it. */
import { randomUUID } from 'node:crypto'
import { flushArchive, openStorage } from '../../src/jobs/archive.ts'
import { openPool } from '../../src/postgres/database.ts'

const { DATABASE_URL, ARCHIVE_URL, S3_ENDPOINT } = process.env
const pool = openPool({
  connection: { url: DATABASE_URL! },
  ...{ max: 2, name: 'archive writer', onError: () => {} },
})
const storage = await openStorage(ARCHIVE_URL!, {
  ...{ endpoint: S3_ENDPOINT ?? null, region: null, sessionToken: null },
  ...{ accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
})
for (;;) {
  await flushArchive({
    pool,
    owner: randomUUID(),
    storage: {
      async put(path, bytes) {
        process.stdout.write('writing\n')
        await storage.put(path, bytes)
      },
    },
  })
}
