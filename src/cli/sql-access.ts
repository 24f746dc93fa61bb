import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { CreatedSqlAccess } from '../admin/sql-access.ts'
import type { Connection } from '../postgres/database.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import {
  dataOption,
  readingDatabase,
  requireData,
  tenantFilter,
  tenantOption,
  withDatabase,
} from './session.ts'

const NOTES = `
The role sees the rows of its tenant in the views of the schema kontor_bi (docs/guides/bi.md), and no table. The password is
shown once. Time limit and read-only mode are defaults of the role's sessions; what it may see and the number of
connections are enforced.`

export function addSqlAccess(program: Command, out: Output): void {
  const access = program
    .command('sql-access')
    .description('SQL for BI tools: database roles that read the views of one tenant.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor sql-access create --tenant acme --name metabase'))
  addCreate(access, out)
  access
    .command('list')
    .description('List the roles.')
    .addOption(tenantFilter())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor sql-access list'))
    .action(async options => {
      await requireData(options)
      await readingDatabase(options, out, async ({ admin }) =>
        out.json(await admin.sqlAccess.list(options.tenant)),
      )
    })
  access
    .command('revoke')
    .description('Take a role away: it sees nothing any more, and its sessions end.')
    .argument('<role>', 'as the list has it')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor sql-access revoke kontor_bi_3f0c9a1be2d45678'))
    .action(async (role, options) => {
      await requireData(options)
      await withDatabase(options, out, async ({ admin }) => out.json(await admin.sqlAccess.revoke(role)))
    })
}

function addCreate(access: Command, out: Output): void {
  access
    .command('create')
    .description('Make a role and print how to connect with it.')
    .addOption(tenantOption())
    .option('--name <name>', 'what it is for', 'bi')
    .option('--connections <n>', 'how many at once', wholeNumber, 5)
    .option('--statement-seconds <n>', 'how long a query may take', wholeNumber, 60)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor sql-access create --tenant acme --name metabase'))
    .action(async ({ tenant, name, connections, statementSeconds, ...options }) => {
      await requireData(options)
      await withDatabase(options, out, async ({ admin, connection }) => {
        const made = await admin.sqlAccess.create({ tenant: tenant!, name, connections, statementSeconds })
        out.json({ ...made, ...reached(connection, made) })
      })
    })
}

function wholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

/** How to connect from here, and who else can. */
function reached(
  connection: Connection,
  { role, password, database }: CreatedSqlAccess,
): { connection: string; reach: string } {
  const name = encodeURIComponent(database)
  if ('url' in connection) {
    const url = new URL(connection.url)
    url.username = role
    url.password = password
    return { connection: url.href, reach: 'as this command reaches the database' }
  }
  const { host, port } = connection
  if (!host.startsWith('/'))
    return {
      connection: `postgresql://${role}:${password}@${host}:${port}/${name}`,
      reach: 'from this machine, while the server runs; the port changes when it starts again',
    }
  return {
    connection: `postgresql://${role}:${password}@/${name}?host=${encodeURIComponent(host)}&port=${port}`,
    reach:
      'over the socket of the embedded PostgreSQL: on this machine, as the user it runs as, while the server runs. BI tools elsewhere need a PostgreSQL of your own (DATABASE_URL).',
  }
}
