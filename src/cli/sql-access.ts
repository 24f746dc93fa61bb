import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { CreatedSqlAccess } from '../admin/sql-access.ts'
import type { Connection } from '../postgres/database.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, tenantFilter, tenantOption, withDatabase } from './session.ts'

const NOTES = `
The role can read the views of the schema kontor_bi (docs/guides/bi.md), but no tables. The password is shown only once.
PostgreSQL enforces that the role sees only the rows of its tenant, and limits its connections. A running server ends a session
that exceeds the statement timeout or holds a lock, and restores the password if the role changes it.`

export function addSqlAccess(program: Command, out: Output): void {
  const access = program
    .command('sql-access')
    .description('Manage SQL access for BI tools: database roles that read the views of one tenant.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor sql-access create --tenant acme --name metabase'))
  access
    .command('create')
    .description('Create a role and print its connection string.')
    .addOption(tenantOption())
    .option('--name <name>', 'label of the role', 'bi')
    .option('--connections <n>', 'maximum number of connections', parseWholeNumber, 5)
    .option('--statement-seconds <n>', 'statement timeout in seconds', parseWholeNumber, 60)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor sql-access create --tenant acme --name metabase'))
    .action(async ({ tenant, name, connections, statementSeconds, ...options }) => {
      await withDatabase(options, out, async ({ admin, connection }) => {
        const made = await admin.sqlAccess.create({ tenant: tenant!, name, connections, statementSeconds })
        out.json({ ...made, ...describeConnection(connection, made) })
      })
    })
  access
    .command('list')
    .description('List the database roles.')
    .addOption(tenantFilter())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor sql-access list'))
    .action(async options => {
      await printRead(options, out, admin => admin.sqlAccess.list(options.tenant))
    })
  access
    .command('revoke')
    .description('Revoke a role and end its sessions.')
    .argument('<role>', 'name of the role, see `kontor sql-access list`')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor sql-access revoke kontor_bi_3f0c9a1be2d45678'))
    .action(async (role, options) => {
      await printChange(options, out, admin => admin.sqlAccess.revoke(role))
    })
}

function parseWholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}

/** The connection string, and from where it works. */
function describeConnection(
  connection: Connection,
  { role, password, database }: CreatedSqlAccess,
): { connection: string; reach: string } {
  const name = encodeURIComponent(database)
  if ('url' in connection) {
    const url = new URL(connection.url)
    url.username = role
    url.password = password
    return {
      connection: url.href,
      reach: 'You can connect from every machine from which this command can connect to the database.',
    }
  }
  const { host, port } = connection
  if (!host.startsWith('/'))
    return {
      connection: `postgresql://${role}:${password}@${host}:${port}/${name}`,
      reach: 'You can connect only from this machine, while the server runs. The port changes with each start.',
    }
  return {
    connection: `postgresql://${role}:${password}@/${name}?host=${encodeURIComponent(host)}&port=${port}`,
    reach:
      'You can connect only from this machine (socket of the embedded PostgreSQL), as the operating system user of PostgreSQL, while the server runs. For BI tools on other machines, use your own PostgreSQL (DATABASE_URL).',
  }
}
