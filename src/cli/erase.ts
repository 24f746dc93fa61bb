import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, withDatabase } from './session.ts'

export const erase = defineCommand({
  name: 'erase',
  summary: 'Erase a person: events, identities and contact go, sales stay without a name.',
  flags: {
    tenant: { value: 'T', meaning: 'the id or the name of the tenant', required: true },
    email: { value: 'E', meaning: 'an e-mail address of the person' },
    profile: { value: 'P', meaning: 'or the profile: profile_id of an event or a conversion' },
    ...databaseFlags,
  },
  notes: [
    'Prints a receipt with what was removed; it names nobody, and is kept. Everyone who shares the profile is erased.\n' +
      'What was accepted before and is not processed yet is awaited for 10 seconds; run it again where the receipt says\n' +
      '"not_yet_processed". Erase the person in the shop and the CRM first: what they send again is stored again.',
  ],
  examples: [
    'kontor erase --tenant acme --email ada@example.com',
    'kontor erase --tenant acme --profile prof_17 > receipt.json',
  ],
  run: ({ flags, out }) => {
    const { tenant, email, profile } = flags
    if ((email === undefined) === (profile === undefined))
      throw new UsageError('Name the person with --email or with --profile: one of the two.')
    return withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.erasures.erase({ tenant, email, profile }))
      return 0
    })
  },
})
