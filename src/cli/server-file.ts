import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The contents of server.json, which a running server writes to its data directory for `kontor status`. */
type RunningServer = {
  pid: number
  version: string
  url: string
  ops_url: string | null
  /** Number of HTTP processes. */
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

/** Null if there is no server file. The file of a killed server may still exist. */
export async function announcedServer(dataDir: string): Promise<RunningServer | null> {
  try {
    return JSON.parse(await readFile(pathIn(dataDir), 'utf8')) as RunningServer
  } catch {
    return null
  }
}

/** Whether a server responds at this URL. */
export async function answersAt(url: string): Promise<boolean> {
  return (await answerAt(url)) !== null
}

/** Reads /healthz. An older server reports fewer fields. Null if there is no response, or it is not from Kontor. */
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
