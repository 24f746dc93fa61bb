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
import { systemDirectory } from './embedded.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'

const NOTES = `
Where root's PostgreSQL cannot enter the data directory, the database lives in ${systemDirectory}/clusters and a link in the
data directory points to it. Deleting the data directory leaves the cluster behind; it is never removed by itself.`

export function addData(program: Command, out: Output): void {
  const data = program.command('data').description('Embedded databases outside of their data directories.')
  data.addHelpText('after', NOTES)
  data.addHelpText('after', examples('kontor data list', 'kontor data remove 14b765a161112d47'))
  addList(data, out)
  addRemove(data, out)
}

function addList(data: Command, out: Output): void {
  data
    .command('list')
    .description(
      `List the clusters in ${systemDirectory}, whose data directories they are, and what they take.`,
    )
    .addHelpText(
      'after',
      examples('kontor data list', 'kontor data list | jq -r ".[] | select(.linked | not).name"'),
    )
    .action(async () => out.json((await listClusters(systemDirectory)).map(shown)))
}

function addRemove(data: Command, out: Output): void {
  data
    .command('remove')
    .description('Remove a cluster that no data directory points to, for good.')
    .argument('<name>', 'its name, as `kontor data list` shows it')
    .option('--yes', 'do not ask')
    .addHelpText('after', examples('kontor data remove 14b765a161112d47 --yes'))
    .action(async (name, { yes }) => {
      const cluster = await findCluster(systemDirectory, name)
      if (cluster === null)
        throw new AdminError(
          'not_found',
          'no_cluster',
          `There is no cluster ${JSON.stringify(name)} in ${systemDirectory}.`,
        )
      refuse(reasonToKeep(cluster))
      if (!yes && !(await isConfirmed(cluster))) return out.say('Nothing was removed.')
      refuse(await removeCluster(cluster))
      out.json({ removed: cluster.name, bytes: cluster.bytes })
    })
}

function refuse(reason: string | null): void {
  if (reason !== null) throw new AdminError('conflict', 'cluster_in_use', reason)
}

async function isConfirmed({ directory, dataDir, bytes }: Cluster): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('This removes a database for good: confirm it with --yes.')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(
    `Remove ${directory} (${Math.ceil(bytes / 1024 ** 2)} MB) for good? It was the database of ${dataDir}, which no longer points to it. [y/N] `,
  )
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}

const shown = ({ name, directory, bytes, dataDir, isLinked, isRunning }: Cluster) => ({
  name,
  directory,
  bytes,
  data_directory: dataDir,
  linked: isLinked,
  running: isRunning,
})
