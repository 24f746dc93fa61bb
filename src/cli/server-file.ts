import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The contents of server.json, which a running server writes to its data directory for `kontor status`. */
export type RunningServer = {
  pid: number
  version: string
  url: string
  ops_url: string | null
  /** Number of HTTP processes. */
  processes: number
  started_at: string
}

const serverFilePath = (dataDir: string) => join(dataDir, 'server.json')

export async function writeServerFile(dataDir: string, server: RunningServer): Promise<void> {
  await writeFile(serverFilePath(dataDir), `${JSON.stringify(server)}\n`)
}

export async function removeServerFile(dataDir: string): Promise<void> {
  await rm(serverFilePath(dataDir), { force: true })
}

/** Null if there is no server file. The file of a killed server may still exist. */
export async function readServerFile(dataDir: string): Promise<RunningServer | null> {
  try {
    return JSON.parse(await readFile(serverFilePath(dataDir), 'utf8')) as RunningServer
  } catch {
    return null
  }
}
