import { checkConfig } from './check-config.ts'
import type { Command } from './command.ts'
import { deadLetterCommands } from './dead-letters.ts'
import { demo } from './demo.ts'
import { erase } from './erase.ts'
import type { Group } from './help.ts'
import { keyCommands } from './key.ts'
import { migrate } from './migrate.ts'
import { snapshot } from './snapshot.ts'
import { sourceCommands } from './source.ts'
import { sourceTest } from './source-test.ts'
import { start } from './start.ts'
import { status } from './status.ts'
import { tenantCommands } from './tenant.ts'

export const groups: Group[] = [
  { name: 'tenant', summary: 'Tenants: whose data it is.' },
  { name: 'key', summary: 'Keys: who may use the APIs.' },
  { name: 'source', summary: 'Sources: external systems that post events.' },
  { name: 'dead-letters', summary: 'Dead letters: what could not be processed.' },
]

export const commands: Command[] = [
  start,
  status,
  migrate,
  checkConfig,
  demo,
  ...tenantCommands,
  ...keyCommands,
  ...sourceCommands,
  sourceTest,
  ...deadLetterCommands,
  snapshot,
  erase,
]
