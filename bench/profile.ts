import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Statement } from './service.ts'

type Node = { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[] }

/** What a thread did, in percent of its busy time. */
type ThreadSummary = { thread: string; functions: [string, number][]; parts: [string, number][] }

export type Summary = { threads: ThreadSummary[]; statements: Statement[] }

/** What each thread of the server did, and PostgreSQL's statements. */
export function summarize(directory: string): Summary {
  return {
    threads: readdirSync(directory)
      .filter(name => name.endsWith('.cpuprofile'))
      .map(name => summarizeThread(nameOfThread(name), JSON.parse(readFileSync(join(directory, name), 'utf8')))),
    statements: JSON.parse(readFileSync(join(directory, 'statements.json'), 'utf8')),
  }
}

/** Node names a profile CPU.date.time.process.thread.number.cpuprofile; the main thread has the number 0. */
function nameOfThread(file: string): string {
  return file.split('.').at(-3) === '0' ? 'HTTP' : 'pipeline'
}

function summarizeThread(thread: string, profile: Profile): ThreadSummary {
  const frames = new Map(profile.nodes.map(node => [node.id, node.callFrame]))
  const functions = new Map<string, number>()
  const parts = new Map<string, number>()
  let busy = 0
  for (const [i, id] of profile.samples.entries()) {
    const { functionName, url, lineNumber } = frames.get(id)!
    if (functionName === '(idle)') continue
    const time = profile.timeDeltas[i]!
    busy += time
    const place = url === '' ? '' : ` ${shortened(url)}:${lineNumber + 1}`
    add(functions, `${functionName || '(anonymous)'}${place}`, time)
    add(parts, classifyFunction(functionName, url), time)
  }
  return { thread, functions: ranked(functions, busy, 25), parts: ranked(parts, busy, 25) }
}

function add(sums: Map<string, number>, key: string, time: number): void {
  sums.set(key, (sums.get(key) ?? 0) + time)
}

function ranked(sums: Map<string, number>, total: number, count: number): [string, number][] {
  return [...sums]
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([key, time]) => [key, Math.round((time / total) * 1000) / 10])
}

function shortened(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(/^.*\/src\//, 'src/')
}

function classifyFunction(functionName: string, url: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native'
  if (url.startsWith('node:')) return url.split('/')[0]!
  const dependency = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (dependency) return dependency
  return shortened(url).split('/').slice(0, -1).join('/') || shortened(url)
}
