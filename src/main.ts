import { processOutput } from './cli/output.ts'
import { runCommand } from './cli/program.ts'

// `kontor … | head` closes the pipe before all is written, and wants to hear nothing of it.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
})

// Not process.exit: it would cut off what is still on its way to a pipe.
process.exitCode = await runCommand(process.argv.slice(2), processOutput())
