/** What `kontor import stripe` and `kontor reconcile stripe` share: the source, the key and the file. */

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { SourceView } from '../admin/sources.ts'
import { findSourceNamespace } from '../domain/billing/namespace.ts'
import { type Input, openInput } from '../import/files.ts'
import { UsageError } from './errors.ts'
import { readSecretOptions } from './options.ts'

export const sourceOption = () =>
  new Option(
    '--source <source>',
    'id or name of the Kontor source that receives the webhooks of this Stripe account; Kontor uses the namespace of this source (default: the sources with the preset stripe)',
  )

export const namespaceOption = () =>
  new Option(
    '--namespace <namespace>',
    'namespace of this Stripe account: Kontor adds it to the ids, so that equal ids of different billing systems stay distinct; cannot be combined with --source (default: the namespace of the sources with the preset stripe, otherwise "stripe")',
  ).argParser(text => {
    if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$/.test(text)) return text
    throw new InvalidArgumentError('Expected up to 50 letters, digits, "_", "." or "-".')
  })

export const keyOption = () =>
  new Option(
    '--key <key>',
    'restricted key of the Stripe account, to read from its API; use - to read the key from standard input',
  )

export const keyFileOption = () => new Option('--key-file <file>', 'file that contains the key')

type KeyOptions = { key?: string | undefined; keyFile?: string | undefined }

/** The key of a live account. Exactly one of a file and a key must be given. */
export async function readStripeKey(file: string | undefined, options: KeyOptions): Promise<string | null> {
  const { key } = await readSecretOptions({ key: { value: options.key, file: options.keyFile } })
  if ((file === undefined) === (key === undefined))
    throw new UsageError('Specify either a file or a Stripe key (--key or --key-file).')
  if (key === undefined) return null
  if (/^\w+_test_/.test(key))
    throw new UsageError('This is a test mode key. Reports do not include test data. Use a live mode key (rk_live_…).')
  if (key.startsWith('pk_'))
    throw new UsageError('This is a publishable key, which cannot read. Use a restricted key (rk_live_…).')
  return key
}

type SourceOptions = { source?: string | undefined; namespace?: string | undefined }

/**
 * The namespace of a Stripe account's ids, by its source. Without options: that of the tenant's Stripe sources, else of the sources
 * without a provider that name one, else `stripe`.
 */
export function chooseNamespace(sources: SourceView[], { source: name, namespace }: SourceOptions): string {
  if (name !== undefined && namespace !== undefined)
    throw new UsageError('Specify either --source or --namespace, not both.')
  if (namespace !== undefined) return namespace
  if (name !== undefined) {
    const found = sources.find(({ id }) => id === name) ?? sources.find(source => source.name === name)
    if (!found) throw new UsageError(`The tenant has no source ${JSON.stringify(name)}.`)
    const own = namespaceOf(found)
    if (own === null)
      throw new UsageError(
        `The source ${found.id} does not update the ledger, because its setting "billing" is false. Choose another source, or set "billing" to true with kontor source update.`,
      )
    return own
  }
  const ofStripe = sources.filter(({ preset }) => preset === 'stripe')
  const candidates = ofStripe.length > 0 ? ofStripe : sources.filter(source => !source.preset && source.namespace)
  const namespaces = new Set(candidates.map(namespaceOf).filter(own => own !== null))
  if (namespaces.size <= 1) return [...namespaces][0] ?? 'stripe'
  const listed = candidates.map(source => `  - ${source.id} (${source.name}): namespace ${namespaceOf(source)}`)
  throw new UsageError(
    ['The tenant has sources with different namespaces. Choose one with --source or --namespace:', ...listed].join(
      '\n',
    ),
  )
}

/** Null: the source does not feed the ledger. */
export function namespaceOf({ type, preset, billing, namespace }: SourceView): string | null {
  return findSourceNamespace({
    ...{ sourceType: type, preset },
    ...(billing !== null && { billing }),
    ...(namespace !== null && { namespace }),
  })
}

/** A file that is read twice. Standard input is copied to a temporary file, which `close` removes. */
export async function openStripeFile(
  file: string,
  command: 'import stripe' | 'reconcile stripe',
): Promise<{ input: Input; close(): Promise<void> }> {
  if (file !== '-') return { input: await openInput(file, new Date(), { command }), close: async () => {} }
  const directory = await mkdtemp(join(tmpdir(), 'kontor-stripe-'))
  const close = () => rm(directory, { recursive: true, force: true })
  try {
    const path = join(directory, 'stdin')
    await pipeline(process.stdin, createWriteStream(path, { mode: 0o600 }))
    // without a path there is no journal, and messages say "the input"
    return { input: { ...(await openInput(path, new Date(), { command })), path: null }, close }
  } catch (error) {
    await close()
    throw error
  }
}
