import { migrate as applyMigrations } from '../postgres/migrate.ts'
import { defineCommand } from './command.ts'
import { databaseFlags, withBareDatabase } from './session.ts'

export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Bring the database to the schema of this version. `kontor start` does it by itself.',
  flags: databaseFlags,
  notes: ['Prints {"applied": [names]}. Safe beside running servers and from several machines at once.'],
  examples: ['kontor migrate', 'DATABASE_URL=postgres://kontor:PASSWORD@db.internal/kontor kontor migrate'],
  run: ({ flags, out }) =>
    withBareDatabase(flags, out, async ({ pool }) => {
      out.json({ applied: await applyMigrations(pool) })
      return 0
    }),
})
