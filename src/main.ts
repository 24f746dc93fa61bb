import { dispatch } from './cli/dispatch.ts'
import { processOutput } from './cli/output.ts'
import { commands, groups } from './cli/table.ts'
import { version } from './config/version.ts'

// Not process.exit: it would cut off what is still on its way to a pipe.
process.exitCode = await dispatch(process.argv.slice(2), { groups, commands, version }, processOutput)
