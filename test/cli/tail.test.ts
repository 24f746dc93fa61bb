import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, test } from 'node:test'
import { eventually } from '../eventually.ts'
import { sharedServer } from '../server.ts'
import { kontor, startKontor, useDatabase } from './kontor.ts'

const server = await sharedServer()
after(() => server.close())
useDatabase(server.databaseUrl)

function track(body: object): Promise<Response> {
  return fetch(`${server.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.tenant.trackingKey}` },
    body: JSON.stringify(body),
  })
}

test('tail prints existing and then new items, one JSON object per line in a pipe, until it is stopped', async t => {
  await track({ event_type: 'before', visitor: 'v', event_id: 'e-1' })
  await server.settled()
  const tail = startKontor(t, ['tail', '--tenant', server.tenant.id], { DATABASE_URL: server.databaseUrl })
  const types = () =>
    tail
      .out()
      .split('\n')
      .filter(Boolean)
      .map(line => (JSON.parse(line) as { event_type: string }).event_type)
  await eventually('what is there', () => types().includes('before'))
  await track({ event_type: 'after', visitor: 'v', data: { title: '\u001b[2J\u0000' } })
  await eventually('what comes in', () => types().includes('after'))
  assert.deepEqual(types(), ['before', 'after'])
  tail.child.kill('SIGINT')
  assert.equal(await tail.ended, 0)
})

test('logs shows the trace of an event by either id, and the original of a duplicate', async () => {
  await track({ event_type: 'page_view', visitor: 'v', event_id: 'e-2' })
  await server.settled()
  const answer = await kontor('logs', 'e-2', '--tenant', server.tenant.id)
  assert.equal(answer.code, 0, answer.err)
  assert.match(answer.err, /✓ received .*\n✓ normalized page_view, tracking.*\n✓ applied/)
  const { id } = answer.json() as { id: string }
  assert.equal((await kontor('logs', id, '--tenant', server.tenant.id)).out, answer.out)
  const unknown = await kontor('logs', 'unknown-event', '--tenant', server.tenant.id)
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /No such event: "unknown-event"/)
})

test('the bash script completes commands, subcommands and options', async () => {
  const { out, code } = await kontor('completion', 'bash')
  assert.equal(code, 0)
  const complete = (...words: string[]) => {
    const script = `${out}\nCOMP_WORDS=(kontor ${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _kontor; echo "\${COMPREPLY[@]}"`
    const { stdout, stderr, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return stdout.trim().split(' ')
  }
  assert.deepEqual(complete('tena'), ['tenant'])
  assert.deepEqual(complete('key', 'rev'), ['revoke'])
  assert.deepEqual(complete('key', '--data', 'x', 'create', '--ki'), ['--kind'])
  for (const shell of ['zsh', 'fish']) assert.match((await kontor('completion', shell)).out, /complete .*kontor/)
})
