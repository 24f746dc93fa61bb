import type { Command } from '@commander-js/extra-typings'
import { migrate } from '../postgres/migrate.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, withBareDatabase } from './session.ts'

export function addMigrate(program: Command, out: Output): void {
  program
    .command('migrate')
    .description('Migrate the database to the schema of this version. `kontor start` does this automatically.')
    .addOption(dataOption())
    .addHelpText(
      'after',
      '\nPrints {"applied": [names]}. Safe to run while servers are running, and on several machines at once.',
    )
    .addHelpText(
      'after',
      examples('kontor migrate', 'DATABASE_URL=postgres://kontor:PASSWORD@db.internal/kontor kontor migrate'),
    )
    .action(options => withBareDatabase(options, out, async ({ pool }) => out.json({ applied: await migrate(pool) })))
}
