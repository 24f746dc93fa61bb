import { dispatch } from './commands/dispatch.ts'
import { processOutput } from './commands/output.ts'
import { commands, groups } from './commands/table.ts'
import { version } from './config/version.ts'

// Not process.exit: it would cut off what is still on its way to a pipe.
process.exitCode = await dispatch(process.argv.slice(2), { groups, commands, version }, processOutput)
