import { setting, withoutDefault } from './setting.ts'
import { bytes, integer, type Read, word } from './values.ts'

type NatsAddress = {
  /** host:port */
  servers: string[]
  tls: boolean
  user: string | null
  password: string | null
  token: string | null
}

const DEFAULT_PORT = '4222'
const SCHEMES = ['nats:', 'tls:']

/** One or several servers of one cluster. A name without a password is a token. */
const natsAddress: Read<NatsAddress> = text => {
  const urls = text.split(',').map(part => {
    const full = /^[a-z]+:\/\//i.test(part.trim()) ? part.trim() : `nats://${part.trim()}`
    return URL.canParse(full) ? new URL(full) : null
  })
  if (!urls.every(url => url !== null && SCHEMES.includes(url.protocol) && url.hostname !== ''))
    return undefined
  const given = urls as URL[]
  if (given.some(({ pathname, search }) => !['', '/'].includes(pathname) || search !== '')) return undefined
  const named = given.find(({ username }) => username !== '')
  const hasPassword = named !== undefined && named.password !== ''
  const user = named ? decodeURIComponent(named.username) : null
  return {
    servers: given.map(({ hostname, port }) => `${hostname}:${port || DEFAULT_PORT}`),
    tls: given.some(({ protocol }) => protocol === 'tls:'),
    user: hasPassword ? user : null,
    password: hasPassword ? decodeURIComponent(named.password) : null,
    token: hasPassword ? null : user,
  }
}

const withoutCredentials = (text: string) => natsAddress(text)?.servers.join(',') ?? '(hidden)'
const truth: Read<boolean> = text => {
  const given = word('true', 'false')(text)
  return given === undefined ? undefined : given === 'true'
}
const file: Read<string> = text => (text.includes('\0') ? undefined : text)

/** A log on NATS JetStream for events and inbound requests. */
export const natsSettings = {
  natsUrl: withoutDefault({
    name: 'NATS_URL',
    meaning:
      'The servers of a NATS cluster, separated by commas: events and inbound requests are then kept in JetStream until they are processed ' +
      '(docs/guides/scaling.md). User and password, or a token, may stand in the address; `tls://` encrypts.',
    expects:
      'addresses separated by commas, for example nats://kontor:PASSWORD@nats-1:4222,nats://nats-2:4222',
    read: natsAddress,
    show: withoutCredentials,
  }),
  natsCreds: withoutDefault({
    name: 'NATS_CREDS',
    meaning: 'The credentials file with which Kontor signs in at NATS_URL.',
    expects: 'the path of a file, for example /etc/kontor/nats.creds',
    read: file,
  }),
  natsStream: setting({
    name: 'KONTOR_NATS_STREAM',
    default: 'kontor',
    meaning:
      'The name of the stream. Installations that share a NATS cluster have one each: a stream belongs to one database.',
    expects: 'letters, digits, - and _, for example kontor',
    read: (text: string) => (/^[A-Za-z0-9_-]{1,64}$/.test(text) ? text : undefined),
  }),
  natsPartitions: setting({
    name: 'KONTOR_NATS_PARTITIONS',
    default: '4',
    meaning:
      'Into how many subjects the stream is cut: the most workers that can share it. Few, where every message is synced: one flush is a message ' +
      'to each. Fixed when the stream is made.',
    expects: 'a number from 1 to 256, for example 4',
    read: integer(1, 256),
  }),
  natsMaxBytes: setting({
    name: 'KONTOR_NATS_MAX_BYTES',
    default: '4GiB',
    meaning:
      'The most that the stream holds. When half of it is used, what was processed is purged; when all of it is unprocessed, events and inbound ' +
      'requests are answered 503.',
    expects: 'a size from 1MiB to 16384GiB, for example 4GiB',
    read: bytes(2 ** 20, 2 ** 44),
  }),
  natsReplicas: withoutDefault({
    name: 'KONTOR_NATS_REPLICAS',
    meaning:
      'How many servers keep a copy of the stream. When it is not set: three where the cluster has three servers or more, else one.',
    expects: 'a number from 1 to 5, for example 3',
    read: integer(1, 5),
  }),
  natsSynced: setting({
    name: 'KONTOR_NATS_SYNCED',
    default: 'false',
    meaning:
      'You state that every NATS server has `sync_interval: always`. Without it a power failure can take what was acknowledged in the last two minutes, ' +
      'and Kontor says so.',
    expects: 'true or false',
    read: truth,
  }),
  natsAllowUnsynced: setting({
    name: 'KONTOR_NATS_ALLOW_UNSYNCED',
    default: 'false',
    meaning: 'Also use a NATS server older than 2.10.27, which cannot sync before it acknowledges.',
    expects: 'true or false',
    read: truth,
  }),
  natsTakeOver: setting({
    name: 'KONTOR_NATS_TAKE_OVER',
    default: 'false',
    meaning:
      'Take over a stream that belongs to another database, for one start: that database is gone for good, and this one is its successor ' +
      '(restored, moved or upgraded).',
    expects: 'true or false',
    read: truth,
  }),
  natsSystemUrl: withoutDefault({
    name: 'KONTOR_NATS_SYSTEM_URL',
    meaning:
      'The same servers, with a user of the system account: Kontor then reads by itself whether they sync.',
    expects: 'addresses separated by commas, for example nats://sys:PASSWORD@nats-1:4222',
    read: natsAddress,
    show: withoutCredentials,
  }),
  natsSystemCreds: withoutDefault({
    name: 'KONTOR_NATS_SYSTEM_CREDS',
    meaning: 'The credentials file of that user.',
    expects: 'the path of a file, for example /etc/kontor/nats-system.creds',
    read: file,
  }),
}
