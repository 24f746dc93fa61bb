import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingsFile, settingsFor } from '../../embedded-postgres/settings.ts'

const GiB = 1024 ** 3
const machine = { memoryBytes: 4 * GiB, freeDiskBytes: 100 * GiB, sharedMemoryBytes: 2 * GiB, hasLz4: true }

test('memory for PostgreSQL follows the machine between 64 and 512 MB', () => {
  const buffers = (memoryBytes: number) => settingsFor({ ...machine, memoryBytes }).shared_buffers
  assert.deepEqual(
    [0.25, 4, 64].map(size => buffers(size * GiB)),
    ['64MB', '256MB', '512MB'],
  )
})

test('no property of the machine weakens durability', () => {
  for (const variant of [
    {},
    { freeDiskBytes: 0 },
    { memoryBytes: 0 },
    { hasLz4: false },
    { sharedMemoryBytes: null },
  ]) {
    const { fsync, synchronous_commit, full_page_writes } = settingsFor({ ...machine, ...variant })
    assert.deepEqual([fsync, synchronous_commit, full_page_writes], ['on', 'on', 'on'])
  }
})

test('LZ4 is used only if the build supports it, and small shared memory is avoided', () => {
  assert.equal(settingsFor(machine).wal_compression, 'lz4')
  assert.equal(settingsFor({ ...machine, hasLz4: false }).wal_compression, undefined)
  assert.equal(settingsFor(machine).dynamic_shared_memory_type, undefined)
  assert.equal(settingsFor({ ...machine, sharedMemoryBytes: 64 * 1024 ** 2 }).dynamic_shared_memory_type, 'sysv')
})

test('values are quoted as PostgreSQL reads them', () => {
  assert.match(settingsFile("/it's/a\\b", { x: "o'clock" }), /^include '\/it''s\/a\\\\b'\nx = 'o''clock'$/m)
})
