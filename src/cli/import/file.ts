import { basename } from 'node:path'
import { openErrorsFile } from '../../import/errors-file.ts'
import { openJournal } from '../../import/journal.ts'
import type { Rejection } from '../../import/row.ts'
import { type ImportOptions, runImport, type Totals } from '../../import/run.ts'
import { openSend } from '../../import/send.ts'
import { applied } from '../applied.ts'
import type { Output } from '../output.ts'
import { openProgressLine } from '../progress-line.ts'
import { reachServer } from '../reached-server.ts'
import type { Session } from '../session.ts'
import type { Plan } from './plan.ts'
import type { OpenTarget } from './targets.ts'

type FileImport = {
  tenant: string
  plan: Plan
  openTarget: OpenTarget
  dryRun?: true | undefined
  errors?: string | undefined
  url?: string | undefined
}

const SHOWN_REJECTIONS = 5

/** Imports one file and prints the result. */
export async function importFile(session: Session, wanted: FileImport, out: Output): Promise<void> {
  const startedAt = performance.now()
  const { id: tenant } = await session.admin.tenants.show(wanted.tenant)
  const stopping = stopOnSignal(out)
  try {
    const run = (target: ImportOptions['target']) =>
      runImport(optionsOf({ ...wanted, tenant }, target, stopping.signal, out))
    const totals = wanted.dryRun
      ? await run(null)
      : await throughServer(session, { ...wanted, tenant }, run, stopping.signal, out)
    report(totals, wanted, startedAt, out)
  } finally {
    stopping.end()
  }
}

type Run = (target: ImportOptions['target']) => ReturnType<typeof runImport>

async function throughServer(
  session: Session,
  wanted: FileImport,
  run: Run,
  signal: AbortSignal,
  out: Output,
) {
  const server = await reachServer({ config: session.config, url: wanted.url, out })
  const send = openSend(server.url, signal)
  try {
    const { target, close } = await wanted.openTarget(session, wanted.tenant, send)
    try {
      const totals = await run(target)
      if (totals.isWhole && !(await applied(session, out))) out.exitCode = 1
      return totals
    } finally {
      await close()
    }
  } finally {
    send.close()
    await server.close()
  }
}

function optionsOf(
  { plan, tenant, errors, dryRun }: FileImport,
  target: ImportOptions['target'],
  signal: AbortSignal,
  out: Output,
): ImportOptions {
  const { input, rows, reading, identity } = plan
  const line = openProgressLine('rows')
  let shown = 0
  return {
    rows,
    reading,
    target,
    signal,
    journal: openJournal(dryRun ? { ...input, path: null } : input, [tenant, identity]),
    errors: from => openErrorsFile(errors ?? null, from),
    onResumed: read =>
      out.say(`Continuing after the first ${read.toLocaleString('en')} rows, which are already imported.`),
    onProgress: ({ read }) => line.show(read, input.bytes && input.readBytes() / input.bytes),
    onEnd: line.end,
    onRejected(rejections) {
      if (errors !== undefined) return
      for (const rejection of rejections.slice(0, SHOWN_REJECTIONS - shown)) out.say(wordsOf(rejection))
      shown = Math.min(SHOWN_REJECTIONS, shown + rejections.length)
    },
  }
}

function wordsOf({ line, column, reason }: Rejection): string {
  return `Line ${line}: ${column === null ? '' : `${column} `}${reason}`
}

function report(
  totals: Totals & { isWhole: boolean },
  { errors, plan, dryRun }: FileImport,
  startedAt: number,
  out: Output,
): void {
  const { isWhole, ...counts } = totals
  const seconds = Math.round(performance.now() - startedAt) / 1000
  if (!isWhole) out.say('Stopped. Run the same command again to continue.')
  else if (dryRun) out.say('Nothing was sent: this was a dry run.')
  if (counts.rejected > 0 && isWhole) {
    const where = errors === undefined ? 'use --errors FILE to save them' : `see ${errors}`
    const name = plan.input.path === null ? 'the input' : basename(plan.input.path)
    out.say(`${counts.rejected.toLocaleString('en')} rows of ${name} were rejected: ${where}.`)
  }
  out.json({ ...counts, seconds })
  if (counts.rejected > 0 || !isWhole) out.exitCode = 1
}

/** The first signal ends an import after the requests in flight. A second one exits immediately. */
function stopOnSignal(out: Output): { signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = () => {
    if (controller.signal.aborted) process.exit(1)
    out.say('Stopping: waiting for requests in flight.')
    controller.abort()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return {
    signal: controller.signal,
    end() {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
    },
  }
}
