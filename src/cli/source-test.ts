import { defineCommand, UsageError } from './command.ts'
import { readyLog } from './dead-letters.ts'
import { databaseFlags, withDatabase } from './session.ts'

export const sourceTest = defineCommand({
  name: 'source test',
  summary: 'Send a sample event to a source and show its way.',
  arguments: { ID: 'the id of the source (src_…)' },
  flags: {
    body: { value: 'JSON', meaning: 'what to send (default: a sample that fits the source)' },
    header: { value: 'NAME:VALUE', meaning: 'a request header to send along' },
    wait: { value: 'S', meaning: 'how many seconds to wait for it to be processed (default: 10)' },
    ...databaseFlags,
  },
  notes: [
    'The event is real: a running server processes it and lists it as kontor.test, unless the source gives it another type.\n' +
      'It goes in behind the door: token, signature and volume limit are not asked for. Exit code 1 if it does not arrive.',
  ],
  examples: [
    'kontor source test src_4fTzQ9aXw2LmN8pB',
    `kontor source test src_4fTzQ9aXw2LmN8pB --body '{"event_type": "order.shipped", "payload": {"order_id": "o-1"}}'`,
    `kontor source test src_4fTzQ9aXw2LmN8pB --header 'x-shopify-topic: orders/paid' --body '{"id": 1}'`,
  ],
  run: ({ args, flags, out }) => {
    const seconds = flags.wait === undefined ? 10 : Number(flags.wait)
    if (!(seconds >= 0 && seconds <= 600))
      throw new UsageError('--wait must be a number of seconds from 0 to 600.')
    const headers = headerOf(flags.header)
    return withDatabase(flags, out, async session => {
      await readyLog(session)
      const test = await session.admin.sourceTests.test(args.ID, {
        body: flags.body,
        headers,
        waitMs: seconds * 1000,
      })
      for (const { step, ok, detail } of test.steps) out.say(`${ok ? '✓' : '✗'} ${step.padEnd(9)} ${detail}`)
      out.json(test)
      return test.ok ? 0 : 1
    })
  },
})

function headerOf(text: string | undefined): Record<string, string> | undefined {
  if (text === undefined) return undefined
  const [, name, value] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined)
    throw new UsageError('--header must be name:value, for example "x-shopify-topic: orders/paid".')
  return { [name.toLowerCase()]: value }
}
