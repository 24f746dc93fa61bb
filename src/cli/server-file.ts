import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a running server leaves in its data directory, so that `kontor status` finds it. */
type RunningServer = {
  pid: number
  version: string
  url: string
  ops_url: string | null
  /** That serve requests. */
  processes: number
  started_at: string
}

const pathIn = (dataDir: string) => join(dataDir, 'server.json')

export async function announceServer(dataDir: string, server: RunningServer): Promise<void> {
  await writeFile(pathIn(dataDir), `${JSON.stringify(server)}\n`)
}

export async function withdrawServer(dataDir: string): Promise<void> {
  await rm(pathIn(dataDir), { force: true })
}

/** Null where none was announced; one that was killed may still be. */
export async function announcedServer(dataDir: string): Promise<RunningServer | null> {
  try {
    return JSON.parse(await readFile(pathIn(dataDir), 'utf8')) as RunningServer
  } catch {
    return null
  }
}

/** Whether somebody answers there. */
export async function answersAt(url: string): Promise<boolean> {
  return (await answerAt(url)) !== null
}

/** What the operations port of a server tells of it, of an older one not all. Null: nobody answers there, or somebody else. */
export async function serverAt(opsUrl: string): Promise<Partial<RunningServer> | null> {
  try {
    const answer = JSON.parse((await answerAt(`${opsUrl}/healthz`)) ?? 'null')
    if (answer?.status !== 'alive') return null
    const { status: _, ...server } = answer
    return server as Partial<RunningServer>
  } catch {
    return null
  }
}

async function answerAt(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    const text = await response.text()
    return response.status < 500 ? text : null
  } catch {
    return null
  }
}
