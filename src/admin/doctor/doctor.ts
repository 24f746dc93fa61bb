import { databaseNow } from '../../postgres/clock.ts'
import { isUnavailable } from '../../postgres/database.ts'
import {
  type AppliedMigration,
  appliedMigrations,
  foreignMigration,
  missingMigrations,
} from '../../postgres/migrate.ts'
import { rootTables } from '../../postgres/tables.ts'
import { type Check, type Finding, type Installation, kontor, LIMITS, type Limits } from './finding.ts'
import { clocks, disk, durability } from './machine.ts'
import { stream } from './nats.ts'
import { outward } from './outward.ts'
import { claims, failing, processing, sources, transactions, upkeep } from './pipeline.ts'
import { streams } from './streams.ts'

/** What tells of the machine needs no tables of Kontor. */
const OF_ANY_DATABASE: Check[] = [clocks, disk, durability, transactions]
const OF_KONTOR: Check[] = [processing, failing, upkeep, claims, sources, stream, streams, outward]

type Options = Omit<Installation, 'databaseNow' | 'limits'> & { limits?: Limits }

/** Everything that is found wrong; nothing is changed. */
export async function diagnose(options: Options): Promise<Finding[]> {
  try {
    return await examine({ limits: LIMITS, ...options, databaseNow: await databaseNow(options.pool) })
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return [
      {
        code: 'database_away',
        what: `PostgreSQL cannot be reached: ${(error as Error).message}`,
        means: 'Everything is answered 503 until it is back; nothing that was acknowledged is lost.',
        help: 'Start PostgreSQL, and see that DATABASE_URL leads there: psql "$DATABASE_URL" -c \'select 1\'',
      },
    ]
  }
}

/** Nothing to look at, and nothing is made: a directory that was mistyped stays as it is. */
export function databaseMissing(dataDir: string): Finding {
  return {
    code: 'database_missing',
    what: `There is no database in ${dataDir}.`,
    means: 'No server has ever started on it, or this is not the data directory of the server.',
    help: `${kontor({ dataDir }, 'start')}, or give the right --data or DATABASE_URL`,
  }
}

async function examine(installation: Installation): Promise<Finding[]> {
  const schema = await schemaOf(installation)
  const checks = schema === null ? [...OF_ANY_DATABASE, ...OF_KONTOR] : OF_ANY_DATABASE
  const found: (Finding | null)[] = [schema]
  for (const check of checks) found.push(...(await check(installation)))
  return found.filter(finding => finding !== null)
}

/** Why the tables are not those that this version knows; null: they are. */
async function schemaOf(installation: Installation): Promise<Finding | null> {
  const { pool } = installation
  if (!(await rootTables(pool)).includes('schema_migrations'))
    return {
      code: 'schema_missing',
      what: 'The database has no tables of Kontor.',
      means: 'No server has ever started on it, or this is not the database of the server.',
      help: `${kontor(installation, 'start')}, or give the right --data or DATABASE_URL`,
    }
  const done: AppliedMigration[] = await appliedMigrations(pool)
  const foreign = foreignMigration(done)
  if (foreign)
    return {
      code: 'schema_newer',
      what: `The database has the migration ${foreign.name}, which this version does not know.`,
      means: 'It was made by a newer version, and this one does not start on it.',
      help: 'Use the version that made it, or a newer one',
    }
  const missing = missingMigrations(done)
  if (missing.length === 0) return null
  return {
    code: 'schema_old',
    what: `The database is of an older version: it lacks ${missing.join(', ')}.`,
    means: 'This version has not started on it yet. More can be told once it has.',
    help: `${kontor(installation, 'backup --to FILE')}, then ${kontor(installation, 'migrate')}`,
  }
}
