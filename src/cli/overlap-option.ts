import { Option } from '@commander-js/extra-typings'
import { DEFAULT_OVERLAP_HOURS } from '../admin/settings.ts'

export const overlapOption = () =>
  new Option(
    '--overlap-hours <n>',
    `how many hours the previous one remains valid (default: ${DEFAULT_OVERLAP_HOURS})`,
  ).argParser(text => (text.trim() === '' ? Number.NaN : Number(text)))
