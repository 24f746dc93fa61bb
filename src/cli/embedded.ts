import {
  defaultSystemDirectory,
  type Embedded,
  joinCluster,
  ownCluster,
} from '../../embedded-postgres/cluster.ts'
import type { Config } from '../config/config.ts'
import type { Output } from './output.ts'

const NAME = 'kontor'

/** The directory for clusters of root whose data directories PostgreSQL's user cannot access. */
export const systemDirectory = defaultSystemDirectory(NAME)

/** For the server: starts the embedded PostgreSQL of the data directory and owns it. */
export function ownEmbedded({ dataDir }: Config, out: Output): Promise<Embedded> {
  return ownCluster({ name: NAME, dataDir, log: out.say })
}

/** For other commands: uses the PostgreSQL of a running server, or starts it until the command is done. */
export function joinEmbedded({ dataDir }: Config, out: Output): Promise<Embedded> {
  return joinCluster({ name: NAME, dataDir, log: out.say })
}
