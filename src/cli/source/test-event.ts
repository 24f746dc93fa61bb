import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { examples } from '../examples.ts'
import { headerOf } from '../header.ts'
import type { Output } from '../output.ts'
import { dataOption, readyLog, withDatabase } from '../session.ts'

const NOTES = `
The event is real: a running server processes it and lists it as kontor.test, unless the source sets another type.
Token, signature and rate limit are not checked. Exit code 1 if the event is not processed.`

export function addSourceTest(source: Command, out: Output): void {
  source
    .command('test')
    .description('Send a sample event to a source and show how it is processed.')
    .argument('<id>', 'id of the source (src_…)')
    .option('--body <json>', 'request body (default: a sample that matches the source)')
    .option('--header <name:value>', 'additional request header', headerNamed)
    .option('--wait <seconds>', 'seconds to wait until the event is processed', secondsOf, 10)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor source test src_4fTzQ9aXw2LmN8pB',
        `kontor source test src_4fTzQ9aXw2LmN8pB --body '{"event_type": "order.shipped", "payload": {"order_id": "o-1"}}'`,
        `kontor source test src_4fTzQ9aXw2LmN8pB --header 'x-shopify-topic: orders/paid' --body '{"id": 1}'`,
      ),
    )
    .action((id, options) =>
      withDatabase(options, out, async session => {
        await readyLog(session)
        const test = await session.admin.sourceTests.test(id, {
          body: options.body,
          headers: options.header,
          waitMs: options.wait * 1000,
        })
        for (const { step, ok, detail } of test.steps)
          out.say(`${ok ? '✓' : '✗'} ${step.padEnd(9)} ${detail}`)
        out.json(test)
        out.exitCode = test.ok ? 0 : 1
      }),
    )
}

function secondsOf(text: string): number {
  const seconds = Number(text)
  if (seconds >= 0 && seconds <= 600) return seconds
  throw new InvalidArgumentError('Expected a number of seconds from 0 to 600.')
}

function headerNamed(text: string): Record<string, string> {
  const [name, value] = headerOf(text, 'x-shopify-topic: orders/paid')
  return { [name.toLowerCase()]: value }
}
