import { test } from 'node:test'
import { quickRun } from './quick-run.ts'

test('fleet with network faults and killed workers and PostgreSQL: acknowledged data exists exactly once', t =>
  quickRun(t, 'fleet', [
    ...['net-truncate', 'net-reset', 'kill-worker', 'net-blackhole', 'western-time-zone', 'dump-restore'],
    ...['freeze-worker', 'kill-postmaster', 'stop-postgres', 'kill-server', 'net-delay', 'freeze-postmaster'],
  ]))
