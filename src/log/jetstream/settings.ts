/** Where the log on NATS is, and how it is to be made. Plain data: it goes to another thread as it is. */
export type NatsSettings = {
  access: NatsAccess
  /** Of the system account: there Kontor reads whether the servers sync. */
  systemAccess: NatsAccess | null
  stream: string
  /** Of a stream that is made now. */
  partitions: number
  maxBytes: number
  maxAgeMs: number
  /** null: three where the cluster has three servers or more, else one */
  replicas: number | null
  /** The operator says that every server syncs before it acknowledges. */
  isSynced: boolean
  /** Also a server that cannot sync. */
  allowsUnsynced: boolean
  /** Also a stream that belongs to another database: that one is gone for good, the operator says. */
  takesOver: boolean
}

export type NatsAccess = {
  /** host:port */
  servers: string[]
  tls: boolean
  user: string | null
  password: string | null
  token: string | null
  credentialsFile: string | null
}

/** Names the subject of a partition; parts of what is too large for one message lie below it. */
export const subjectOf = (stream: string, partition: number) => `${stream}.log.${partition}`
export const partSubject = (stream: string, partition: number, group: string, part: number | '*') =>
  `${subjectOf(stream, partition)}.part.${group}.${part}`
