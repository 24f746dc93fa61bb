import { parseArgs } from 'node:util'
import type { Mode } from './deployment/deployment.ts'
import { FAULTS, faultLines, faultNamed } from './faults/list.ts'
import { overload } from './overload/overload.ts'
import { run } from './run.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    faults: { type: 'string' },
    mode: { type: 'string', default: 'both' },
    nats: { type: 'boolean', default: false },
    scale: { type: 'string', default: '1' },
    load: { type: 'string', default: '1' },
    patience: { type: 'string', default: '120' },
    'memory-mb': { type: 'string', default: '700' },
    seconds: { type: 'string', default: '60' },
    factor: { type: 'string', default: '10' },
    only: { type: 'string' },
    once: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const HELP = `npm run torture -- [--minutes 10] [--seed S] [--mode single|fleet|both] [--faults a,b] [--once] [--load 1] [--patience 120] [--nats]
npm run torture -- overload [--seconds 60] [--factor 10] [--only record,track-hang,slow-loris]
npm run torture -- --list

Sends load to every surface, injects random faults and records every acknowledged request. Afterwards it checks that the stored data
matches. --load: factor of the default load. --scale: factor of the pauses between faults. --patience: maximum seconds for a
recovery. --memory-mb: maximum memory of a process.
A failure prints its seed, which reproduces the run.`

function faultsNamed(names: string | undefined) {
  if (names === undefined) return FAULTS
  return names.split(',').map(name => faultNamed(name.trim()))
}

const print = (words: string) => console.log(words)

async function torture(): Promise<boolean> {
  const faults = faultsNamed(values.faults)
  const wanted: Mode[] = values.mode === 'both' ? ['single', 'fleet'] : [values.mode as Mode]
  const modes = wanted.filter(mode => faults.some(fault => fault.modes.includes(mode)))
  let ok = true
  for (const mode of modes) {
    const result = await run({
      mode,
      seed: values.seed,
      durationMs: (Number(values.minutes) * 60_000) / modes.length,
      faults,
      scale: Number(values.scale),
      load: Number(values.load),
      patienceMs: Number(values.patience) * 1_000,
      memoryMb: Number(values['memory-mb']),
      hasNats: values.nats,
      httpNodes: 2,
      onceEach: values.once,
      print,
    })
    ok &&= result.ok
  }
  return ok
}

if (values.help) print(HELP)
else if (values.list) print(faultLines().join('\n'))
else if (positionals[0] === 'overload')
  process.exitCode = (await overload({
    seconds: Number(values.seconds),
    factor: Number(values.factor),
    only: values.only?.split(',') ?? null,
    memoryMb: Number(values['memory-mb']),
    print,
  }))
    ? 0
    : 1
else {
  if (positionals.length > 0) throw new Error(`Unknown argument: ${positionals.join(' ')}`)
  process.exitCode = (await torture()) ? 0 : 1
}
