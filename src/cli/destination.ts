import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { WHATS } from '../domain/destinations/destinations.ts'
import { examples } from './examples.ts'
import { headerOf } from './header.ts'
import type { Output } from './output.ts'
import { overlapOption } from './overlap-option.ts'
import { dataOption, readingDatabase, withDatabase } from './session.ts'

const ID = 'the id of the destination (dst_…)'
const EXAMPLE_ID = 'dst_4fTzQ9aXw2LmN8pB'

export function addDestination(program: Command, out: Output): void {
  const destination = program
    .command('destination')
    .description('Destinations: where Kontor sends what took effect, as signed webhooks.')
  destination.addHelpText(
    'after',
    examples(
      'kontor destination create --tenant acme --url https://example.com/hooks',
      'kontor destination list --tenant acme',
    ),
  )
  addCreate(destination, out)
  addList(destination, out)
  addShow(destination, out)
  addUpdate(destination, out)
  addRotate(destination, out)
  addSwitch(destination, out, 'enable', 'Send again: first what was still to be sent.')
  addSwitch(destination, out, 'disable', 'Send nothing more until it is enabled again.')
  addDelete(destination, out)
  addTest(destination, out)
  addDeliveries(destination, out)
  addReplay(destination, out)
}

const listOf = (text: string) => text.split(',').map(part => part.trim())

const headersWith = (text: string, before: Record<string, string> = {}) => {
  const [name, value] = headerOf(text, 'authorization: Bearer abc')
  return { ...before, [name]: value }
}

const WHAT = `what to send: ${WHATS.join(', ')}, separated by commas`
const EVENT_TYPES = 'of events only these, separated by commas; order.* are all that begin so'
const HEADER = 'a request header to send along; may be given several times'

function addCreate(destination: Command, out: Output): void {
  destination
    .command('create')
    .description('Make a destination. From now on it is sent what it wants.')
    .requiredOption('--tenant <tenant>', 'the id or the name of the tenant')
    .requiredOption('--url <url>', 'where to post (https)')
    .option('--name <name>', 'what to call it (default: its host)')
    .option('--what <list>', `${WHAT} (default: events,conversions)`, listOf)
    .option('--event-types <list>', EVENT_TYPES, listOf)
    .option('--header <name:value>', HEADER, headersWith)
    .addOption(dataOption())
    .addHelpText('after', '\nPrints the destination with its "secret", which cannot be shown again.')
    .addHelpText(
      'after',
      examples(
        'kontor destination create --tenant acme --url https://example.com/hooks',
        'kontor destination create --tenant acme --url https://example.com/hooks --what events --event-types page_view,order.*',
      ),
    )
    .action(options =>
      withDatabase(options, out, async ({ admin }) => {
        const { tenant, url, name, what, eventTypes, header } = options
        out.json(
          await admin.destinations.create({
            tenant,
            url,
            name,
            what,
            event_types: eventTypes,
            headers: header,
          }),
        )
      }),
    )
}

function addList(destination: Command, out: Output): void {
  destination
    .command('list')
    .description('List the destinations of a tenant, with how sending to them goes.')
    .requiredOption('--tenant <tenant>', 'the id or the name of the tenant')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor destination list --tenant acme'))
    .action(options =>
      readingDatabase(options, out, async ({ admin }) =>
        out.json(await admin.destinations.list(options.tenant)),
      ),
    )
}

function addShow(destination: Command, out: Output): void {
  destination
    .command('show')
    .description('Show a destination and how sending to it goes; never its secret.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination show ${EXAMPLE_ID}`))
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) => out.json(await admin.destinations.show(id))),
    )
}

function addUpdate(destination: Command, out: Output): void {
  destination
    .command('update')
    .description('Change a destination; what is not named stays as it is.')
    .argument('<id>', ID)
    .option('--url <url>', 'where to post (https)')
    .option('--name <name>', 'what to call it')
    .option('--what <list>', WHAT, listOf)
    .option('--event-types <list>', `${EVENT_TYPES}; * alone: all`, listOf)
    .option('--header <name:value>', `${HEADER}; replaces all of them`, headersWith)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination update ${EXAMPLE_ID} --what events,records`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) => {
        const { url, name, what, eventTypes, header } = options
        const event_types = eventTypes?.join() === '*' ? [] : eventTypes
        out.json(await admin.destinations.update(id, { url, name, what, event_types, headers: header }))
      }),
    )
}

function addRotate(destination: Command, out: Output): void {
  destination
    .command('rotate')
    .description('Replace the secret; messages are signed with the one before too for a while.')
    .argument('<id>', ID)
    .addOption(overlapOption())
    .addOption(dataOption())
    .addHelpText('after', '\nPrints the destination with its new "secret".')
    .addHelpText('after', examples(`kontor destination rotate ${EXAMPLE_ID}`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.destinations.rotate(id, { overlapHours: options.overlapHours })),
      ),
    )
}

function addSwitch(destination: Command, out: Output, name: 'enable' | 'disable', description: string): void {
  destination
    .command(name)
    .description(description)
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination ${name} ${EXAMPLE_ID}`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.destinations.setEnabled(id, name === 'enable')),
      ),
    )
}

function addDelete(destination: Command, out: Output): void {
  destination
    .command('delete')
    .description('Remove a destination, with what was still to be sent to it.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination delete ${EXAMPLE_ID}`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) => {
        await admin.destinations.delete(id)
        out.json({ id, deleted: true })
      }),
    )
}

function addTest(destination: Command, out: Output): void {
  destination
    .command('test')
    .description('Send a signed message of type kontor.test now and show the answer.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', '\nExit code 1 unless it is answered 2xx within 15 seconds.')
    .addHelpText('after', examples(`kontor destination test ${EXAMPLE_ID}`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) => {
        const test = await admin.destinations.test(id)
        out.json(test)
        out.exitCode = test.ok ? 0 : 1
      }),
    )
}

function addDeliveries(destination: Command, out: Output): void {
  destination
    .command('deliveries')
    .description('List the latest attempts to deliver, newest first, with what was answered.')
    .argument('<id>', ID)
    .option('--outcome <outcome>', 'only these: delivered, retrying or failed', outcomeOf)
    .option('--limit <n>', 'how many at most', limitOf, 50)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor destination deliveries ${EXAMPLE_ID} --outcome failed`))
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) => {
        const { outcome = null, limit } = options
        out.json(await admin.destinations.deliveries(id, { outcome, limit, before: null }))
      }),
    )
}

function outcomeOf(text: string): 'delivered' | 'retrying' | 'failed' {
  if (text === 'delivered' || text === 'retrying' || text === 'failed') return text
  throw new InvalidArgumentError('It must be delivered, retrying or failed.')
}

function limitOf(text: string): number {
  const limit = Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1_000) return limit
  throw new InvalidArgumentError('It must be a number from 1 to 1000.')
}

function addReplay(destination: Command, out: Output): void {
  destination
    .command('replay')
    .description('Send everything since then once more, delivered or not, under the same ids.')
    .argument('<id>', ID)
    .requiredOption('--since <time>', 'from when on, for example 2026-01-31T09:30:00Z')
    .addOption(dataOption())
    .addHelpText('after', '\nPrints {"id", "since", "queued"}. A running server sends them.')
    .addHelpText('after', examples(`kontor destination replay ${EXAMPLE_ID} --since 2026-01-31`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.destinations.replay(id, options.since)),
      ),
    )
}
