import { Ajv2020 } from 'ajv/dist/2020.js'
import { findUnstorable, pointerToken } from '../domain/json/json.ts'
import type { TSchema } from '../domain/typebox.ts'
import type { ValidationError } from '../domain/validation-error.ts'
export type Field = {
  schema: TSchema
  /** Completes "must be …". */
  expects: string
  /** A condition that the schema cannot express. */
  check?: (value: never) => boolean
}

// TypeBox's own validator loads 330 modules and adds 0.2 s to every start. The routes need this one anyway.
const ajv = new Ajv2020({ validateSchema: false, strict: false })

/** Returns all validation errors of the given settings. */
export function validateSettings(given: object, fields: Record<string, Field>): ValidationError[] {
  return Object.entries(given).flatMap(([name, value]): ValidationError[] => {
    const pointer = `/${pointerToken(name)}`
    if (value === undefined) return []
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!field) return [{ pointer, message: `is not a setting; the settings are ${Object.keys(fields).join(', ')}` }]
    const isGood =
      ajv.validate(field.schema, value) && findUnstorable(value).length === 0 && (field.check?.(value as never) ?? true)
    return isGood ? [] : [{ pointer, message: `must be ${field.expects}` }]
  })
}

const MAX_OVERLAP_HOURS = 720

export function validateOverlap(hours: number): ValidationError[] {
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return []
  return [{ pointer: '/overlap_hours', message: `must be a number from 0 to ${MAX_OVERLAP_HOURS}` }]
}

/** Without control characters and unpaired surrogates. */
export function isPrintable(text: string): boolean {
  return !/[\u0000-\u001f\u007f]/.test(text) && text.isWellFormed()
}
