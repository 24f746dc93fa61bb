import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// Half a second of each start is stripping types and compiling; from the second start on it is read from here. Where that
// cannot be written nothing is kept, and nothing said.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
const { processOutput } = await import('./cli/output.ts')
const { runCommand } = await import('./cli/program.ts')

// `kontor … | head` closes the pipe before all is written, and wants to hear nothing of it.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
})

// Not process.exit: it would cut off what is still on its way to a pipe.
process.exitCode = await runCommand(process.argv.slice(2), processOutput())
