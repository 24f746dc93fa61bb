import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FirstStart, onFirstStart } from '../../src/admin/first-start.ts'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()
const start = (show: (made: FirstStart) => Promise<void>) => onFirstStart(opened, show)

// One story, in order: the database goes from new to started.
test('keys of a start that died before showing them are revoked by the next, which shows its own', async () => {
  let unseen: FirstStart | undefined
  const killed = start(async made => {
    unseen = made
    throw new Error('killed')
  })
  await assert.rejects(killed, /killed/)

  const shown: FirstStart[] = []
  // Two nodes at once: one shows, the other waits and finds it done.
  const firsts = await Promise.all([0, 1].map(() => start(async made => void shown.push(made))))
  assert.deepEqual(firsts.toSorted(), [false, true])
  assert.equal(shown.length, 1)

  const made = shown[0]!
  assert.equal(made.tenant.name, 'default')
  assert.equal(made.tenant.id, unseen!.tenant.id)
  const { keys, sources } = opened.admin
  const all = [...(await keys.list('default')), ...(await keys.list(null))]
  const live = all.filter(({ revoked_at }) => revoked_at === null).map(({ id }) => id)
  assert.deepEqual(live.toSorted(), [made.privateKey.id, made.trackingKey.id, made.adminKey.id].toSorted())
  assert.equal(all.length, 6)
  assert.deepEqual(
    (await sources.list('default')).map(({ id }) => id),
    [made.source.id],
  )
})

test('later starts make and show nothing', async () => {
  const before = await opened.admin.keys.list('default')
  assert.equal(await start(async () => assert.fail('shown again')), false)
  assert.deepEqual(await opened.admin.keys.list('default'), before)
})
