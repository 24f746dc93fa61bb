// A process that uses a cluster: `node using.ts own|join DIR [SYSTEM_DIRECTORY]`.
// It prints one line of JSON once it has the cluster or has failed. It stops when it reads a line on standard input.
import { once } from 'node:events'
import { joinCluster, ownCluster } from '../../embedded-postgres/cluster.ts'

const [how, dataDir, systemDirectory] = process.argv.slice(2)
const use = how === 'own' ? ownCluster : joinCluster
try {
  const embedded = await use({
    dataDir: dataDir!,
    log: () => {},
    ...(systemDirectory ? { systemDirectory } : {}),
  })
  console.log(JSON.stringify({ state: embedded.state, connection: embedded.connection }))
  await once(process.stdin, 'data')
  await embedded.stop()
  process.exit(0)
} catch (error) {
  console.log(JSON.stringify({ refused: (error as Error).message }))
  process.exit(1)
}
