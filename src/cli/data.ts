import { createInterface } from 'node:readline/promises'
import type { Command } from '@commander-js/extra-typings'
import {
  type Cluster,
  findCluster,
  listClusters,
  reasonToKeep,
  removeCluster,
} from '../../embedded-postgres/clusters.ts'
import { AdminError } from '../admin/error.ts'
import { UsageError } from './errors.ts'
import { examples, jsonOption } from './options.ts'
import type { Output } from './output.ts'
import { systemDirectory } from './session.ts'

const DIRECTORY = `${systemDirectory}/clusters`

const NOTES = `
If Kontor runs as root and PostgreSQL's user cannot access the data directory, the database is stored in
${DIRECTORY} and a link in the data directory points to it. Deleting the data directory does not delete that
database. Only \`kontor data remove\` does.`

export function addData(program: Command, out: Output): void {
  const data = program
    .command('data')
    .description(`List or delete embedded databases in ${DIRECTORY} (used when Kontor runs as root).`)
  data.addHelpText('after', NOTES)
  data.addHelpText('after', examples('kontor data list', 'kontor data remove 14b765a161112d47'))
  data
    .command('list')
    .description(`List the databases in ${DIRECTORY} with their data directories and disk usage.`)
    .addOption(jsonOption())
    .addHelpText('after', examples('kontor data list', 'kontor data list | jq -r ".[] | select(.linked | not).name"'))
    .action(async () => out.json((await listClusters(systemDirectory)).map(toView)))
  data
    .command('remove')
    .description('Permanently delete a database that no data directory points to.')
    .argument('<name>', 'name of the database, see `kontor data list`')
    .option('--yes', 'do not ask for confirmation')
    .addHelpText('after', examples('kontor data remove 14b765a161112d47 --yes'))
    .action(async (name, { yes }) => {
      const cluster = await findCluster(systemDirectory, name)
      if (cluster === null)
        throw new AdminError('not_found', 'no_cluster', `No such database in ${DIRECTORY}: ${JSON.stringify(name)}.`)
      throwIfRefused(reasonToKeep(cluster))
      if (!yes && !(await isConfirmed(cluster))) return out.say('Nothing was removed.')
      throwIfRefused(await removeCluster(cluster))
      out.json({ removed: cluster.name, bytes: cluster.bytes })
    })
}

function throwIfRefused(reason: string | null): void {
  if (reason !== null) throw new AdminError('conflict', 'cluster_in_use', reason)
}

async function isConfirmed({ directory, dataDir, bytes }: Cluster): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('This permanently deletes a database. Confirm with --yes.')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(
    `Permanently delete ${directory} (${Math.ceil(bytes / 1024 ** 2)} MB)? It was the database of ${dataDir}, which no longer points to it. [y/N] `,
  )
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}

const toView = ({ name, directory, bytes, dataDir, isLinked, isRunning }: Cluster) => ({
  name,
  directory,
  bytes,
  data_directory: dataDir,
  linked: isLinked,
  running: isRunning,
})
