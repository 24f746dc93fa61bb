import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import type { AuditView } from '../admin/audit.ts'
import { END_OF_DAY, examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, withReadAdmin } from './session.ts'

const PAGE = 100
const DEFAULT_ROWS = 100

export function addAudit(program: Command, out: Output): void {
  const audit = program.command('audit').description('Show the audit log. Its rows cannot be changed.')
  audit.addHelpText('after', examples('kontor audit list'))
  audit
    .command('list')
    .description('List erasures, replays, and changes to tenants, keys, sources and settings, newest first.')
    .option('--tenant <tenant>', 'only changes of this tenant (id or name)')
    .option('--since <time>', 'only changes at or after this time, for example 2026-01-31 or 2026-01-31T09:30:00Z')
    .option('--until <time>', `only changes until this time; ${END_OF_DAY}`)
    .option('--limit <n>', `maximum number of changes (default: ${DEFAULT_ROWS})`, parseLimit)
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples('kontor audit list', 'kontor audit list --tenant acme --since 2026-01-31 --limit 1000'),
    )
    .action(({ tenant, since, until, limit = DEFAULT_ROWS, ...options }) =>
      withReadAdmin(options, out, async ({ admin }) => {
        const changes: AuditView[] = []
        for (;;) {
          const last = changes.at(-1)
          const before = last && { at: new Date(last.at), id: last.id }
          const wanted = Math.min(PAGE, limit - changes.length)
          const page = await admin.audit.list({ tenant, since, until, limit: wanted, before })
          changes.push(...page)
          if (page.length < wanted || changes.length >= limit) return out.json(changes)
        }
      }),
    )
}

function parseLimit(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text.trim())) throw new InvalidArgumentError('Expected a positive integer.')
  return Number(text)
}
