import { type Command, Option } from '@commander-js/extra-typings'
import { examples } from '../examples.ts'
import type { Output } from '../output.ts'
import { dataOption, readingDatabase, withDatabase } from '../session.ts'
import { addSourceCreate } from './create.ts'
import { addSourceRotate } from './rotate.ts'
import { SETTINGS_NOTE, settingsOf } from './settings.ts'
import { addSourceTest } from './test-event.ts'

const ID = 'id of the source (src_…)'

export function addSource(program: Command, out: Output): void {
  const source = program.command('source').description('Manage sources: external systems that post events.')
  source.addHelpText(
    'after',
    examples('kontor source create --tenant acme --type webhook', 'kontor source list --tenant acme'),
  )
  addSourceCreate(source, out)
  addList(source, out)
  addShow(source, out)
  addUpdate(source, out)
  addSourceRotate(source, out)
  addSourceTest(source, out)
  addSwitch(source, out, {
    name: 'disable',
    enabled: false,
    description: 'Reject requests to a source with 403 until it is enabled again.',
  })
  addSwitch(source, out, {
    name: 'enable',
    enabled: true,
    description: 'Accept requests to a source again.',
  })
  addDelete(source, out)
}

function addList(source: Command, out: Output): void {
  source
    .command('list')
    .description('List the sources of a tenant.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source list --tenant acme'))
    .action(options =>
      readingDatabase(options, out, async ({ admin }) => out.json(await admin.sources.list(options.tenant))),
    )
}

function addShow(source: Command, out: Output): void {
  source
    .command('show')
    .description('Show a source and its settings. Token and secret are not shown.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source show src_4fTzQ9aXw2LmN8pB'))
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) => out.json(await admin.sources.show(id))),
    )
}

function addUpdate(source: Command, out: Output): void {
  source
    .command('update')
    .description('Change the settings of a source. Omitted settings keep their values.')
    .argument('<id>', ID)
    .addOption(
      new Option('--config <json>', 'settings to change, as a JSON object')
        .argParser(settingsOf)
        .makeOptionMandatory(),
    )
    .addOption(dataOption())
    .addHelpText('after', SETTINGS_NOTE)
    .addHelpText(
      'after',
      examples(
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"rate_limit": {"events": 100, "per_seconds": 60}}'`,
        `kontor source update src_4fTzQ9aXw2LmN8pB --config '{"event_type_override": null}'`,
      ),
    )
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.sources.update(id, options.config)),
      ),
    )
}

function addSwitch(
  source: Command,
  out: Output,
  { name, enabled, description }: { name: string; enabled: boolean; description: string },
): void {
  source
    .command(name)
    .description(description)
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples(`kontor source ${name} src_4fTzQ9aXw2LmN8pB`))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) => out.json(await admin.sources.setEnabled(id, enabled))),
    )
}

function addDelete(source: Command, out: Output): void {
  source
    .command('delete')
    .description('Delete a source. Its events are kept.')
    .argument('<id>', ID)
    .addOption(dataOption())
    .addHelpText('after', examples('kontor source delete src_4fTzQ9aXw2LmN8pB'))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) => {
        await admin.sources.delete(id)
        out.json({ id, deleted: true })
      }),
    )
}
