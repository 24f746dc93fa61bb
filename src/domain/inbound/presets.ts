import type { Preset, PresetName } from './preset.ts'
import { chargebee } from './presets/chargebee.ts'
import { custom } from './presets/custom.ts'
import { github } from './presets/github.ts'
import { lago } from './presets/lago.ts'
import { paddle } from './presets/paddle.ts'
import { recurly } from './presets/recurly.ts'
import { revenuecat } from './presets/revenuecat.ts'
import { shopify } from './presets/shopify.ts'
import { standardWebhooks } from './presets/standard-webhooks.ts'
import { stripe } from './presets/stripe.ts'
import { woocommerce } from './presets/woocommerce.ts'

export { type Headers, PRESET_NAMES, type Preset, type PresetName } from './preset.ts'

const PRESETS: Record<PresetName, Preset> = {
  stripe,
  shopify,
  github,
  'standard-webhooks': standardWebhooks,
  woocommerce,
  paddle,
  chargebee,
  recurly,
  lago,
  revenuecat,
  custom,
}

export function findPreset(name: string | null): Preset | null {
  return name !== null && Object.hasOwn(PRESETS, name) ? PRESETS[name as PresetName] : null
}
