import { text } from 'node:stream/consumers'
import type { Command } from '@commander-js/extra-typings'
import { examples, readTextOption } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange } from './session.ts'

export function addRates(program: Command, out: Output): void {
  const rates = program
    .command('rates')
    .description('Manage daily exchange rates for reports that convert all currencies to one.')
  const example = 'kontor rates import eurofxref-hist.csv --tenant acme'
  rates.addHelpText('after', examples(example))
  rates
    .command('import')
    .description(
      'Import rates in the CSV format of the European Central Bank. A rate that exists for a day and currency is replaced.',
    )
    .argument('<file>', 'for example eurofxref-hist.csv; use - to read from standard input')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples(example))
    .action(async (file, { tenant, ...options }) => {
      const csv = file === '-' ? await text(process.stdin) : await readTextOption(file)
      await printChange(options, out, admin => admin.rates.import(tenant, csv))
    })
}
