import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** For a start without a terminal: many people can read logs, only the owner can read this file. Returns its path. */
export async function writeAdminKey(dataDir: string, key: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const path = join(dataDir, 'admin-key')
  const draft = `${path}.${process.pid}`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile(`${key}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  return path
}
