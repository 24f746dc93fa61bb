import { type Embedded, joinCluster, ownCluster, systemDirectoryOf } from '../../embedded-postgres/cluster.ts'
import type { Config } from '../config/config.ts'
import type { Output } from './output.ts'

const NAME = 'kontor'

/** Where root keeps the clusters that PostgreSQL's user could not reach in their data directories. */
export const systemDirectory = systemDirectoryOf(NAME)

/** For the server: the embedded PostgreSQL of the data directory, for itself. */
export function ownEmbedded({ dataDir }: Config, out: Output): Promise<Embedded> {
  return ownCluster({ name: NAME, dataDir, log: out.say })
}

/** For the other commands: the same one beside a running server, or for as long as the command runs. */
export function joinEmbedded({ dataDir }: Config, out: Output): Promise<Embedded> {
  return joinCluster({ name: NAME, dataDir, log: out.say })
}
