import { test } from 'node:test'
import { quickRun } from './quick-run.ts'

test('single machine with kills, freezes and a full disk: acknowledged data exists exactly once', t =>
  quickRun(t, 'single', [
    ...['kill-backend', 'kill-server', 'freeze-postgres', 'disk-full', 'kill-postmaster', 'old-backlog'],
    ...['clock-ahead', 'late-events', 'power-cut', 'freeze-server', 'freeze-backend'],
  ]))
