import { Option } from '@commander-js/extra-typings'
import { DEFAULT_OVERLAP_HOURS } from '../admin/overlap.ts'

export const overlapOption = () =>
  new Option(
    '--overlap-hours <n>',
    `how long the one before stays good (default: ${DEFAULT_OVERLAP_HOURS}; 0: not at all)`,
  ).argParser(text => (text.trim() === '' ? Number.NaN : Number(text)))
