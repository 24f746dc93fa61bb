// The entry point of the command line. In JavaScript: for a TypeScript entry point, Node loads a compiler (50 ms and 18 MB).
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// The C library gives each of ten threads its own pool of memory, which keeps what the thread has freed: 25 MB under full load. It reads
// the number of pools only when a process starts, so the server replaces its process. bin/kontor.mjs has set the variable already.
const { argv, env, execArgv, execPath } = process
if (process.platform === 'linux' && argv[2] === 'start' && !env.MALLOC_ARENA_MAX && !process.channel)
  process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...env, MALLOC_ARENA_MAX: '2' })

// Stripping types and compiling takes half a second of each start. The cache saves that from the second start on. Threads and child
// processes find it by this variable. If the directory is not writable, Node silently runs without a cache.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))
enableCompileCache()
const { processOutput, reportFailedOutput } = await import('./cli/output.ts')
const { runCommand } = await import('./cli/program.ts')

reportFailedOutput()
const code = await runCommand(process.argv.slice(2), processOutput())
// process.exit would discard output that is still buffered for a pipe. A failed output has set the code to 1.
process.exitCode ||= code
