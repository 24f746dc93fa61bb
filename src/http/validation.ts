import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import { pointerToken } from '../domain/json/json.ts'
import { parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import type { ValidationError } from '../domain/validation-error.ts'

// A hostile body can have an error in every byte. More than this number is of no use to a reader.
const MAX_VALIDATION_ERRORS = 1_000
// Ajv reports a failed choice once for itself and once for each alternative.
const MAX_ERRORS = 3 * MAX_VALIDATION_ERRORS

const TYPE_WORDS: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
}

type Schema = Record<string, unknown>

const options: Options = {
  allErrors: true,
  useDefaults: true,
  // adds to every error the schema that it violates; the messages below are built from it
  verbose: true,
  // the schemas are TypeBox's; checking them against the meta-schema cost 0.3 s at every start
  validateSchema: false,
  strict: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
}

function newAjv(coerceTypes: boolean): Ajv2020 {
  const ajv = new Ajv2020({ ...options, coerceTypes })
  ajv.addFormat('timestamp', { type: 'string', validate: text => parseTimestamp(text) !== null })
  for (const documented of ['uri', 'email', 'uuid', 'date']) ajv.addFormat(documented, true)
  ajv.addVocabulary(['example'])
  return ajv
}

/** Fastify's validator compiler. Bodies are validated as they are; parameters and headers are converted from strings first. */
export function validatorCompiler() {
  const strictly = newAjv(false)
  const coercing = newAjv(true)
  return ({ schema, httpPart }: { schema: unknown; httpPart?: string | undefined }) =>
    whenUsed(() => {
      if (httpPart === 'body') return strictly.compile(schema as Schema)
      return withPlainIntegers(coercing.compile(schema as Schema), schema as Schema)
    })
}

/** Compiled by the first request that needs it, in milliseconds: all of them took 0.6 s of every start. */
function whenUsed(compile: () => ValidateFunction): ValidateFunction {
  let validate: ValidateFunction | null = null
  const check = (data: unknown) => {
    validate ??= compile()
    const isValid = validate(data)
    check.errors = validate.errors
    return isValid
  }
  check.errors = null as ValidateFunction['errors']
  return check as unknown as ValidateFunction
}

const INTEGER = /^-?\d+$/

/** Ajv's conversion also accepts 1e3, 0x10 and " 1" as integers. In a parameter they are more likely mistakes. */
function withPlainIntegers(validate: ValidateFunction, { properties }: Schema): ValidateFunction {
  const integers = Object.entries((properties ?? {}) as Record<string, Schema>).flatMap(([name, { type }]) =>
    type === 'integer' ? [name] : [],
  )
  if (integers.length === 0) return validate
  const check = (parameters: Record<string, unknown>) => {
    for (const name of integers) {
      const text = parameters[name]
      if (typeof text === 'string' && !INTEGER.test(text)) parameters[name] = 'no integer'
    }
    const isValid = validate(parameters)
    check.errors = validate.errors
    return isValid
  }
  check.errors = validate.errors
  return check as unknown as ValidateFunction
}

/**
 * The validation errors in plain words; empty for any other error. A route with `attachValidation` reads them from
 * `request.validationError`, adds its own and throws `problems.invalid` once.
 */
export function readValidationErrors(error: unknown): ValidationError[] {
  const errors = (error as { validation?: unknown } | null | undefined)?.validation
  return Array.isArray(errors) ? toValidationErrors(errors as ErrorObject[]) : []
}

function toValidationErrors(errors: ErrorObject[]): ValidationError[] {
  const found = new Map<string, ValidationError>()
  const first = withoutAlternatives(errors.slice(0, MAX_ERRORS))
  const listed = new Set(first.flatMap(({ keyword, instancePath }) => (keyword === 'enum' ? [instancePath] : [])))
  for (const error of first) {
    if (error.keyword === 'type' && listed.has(error.instancePath)) continue // the list of values says it as well
    const validationError = { pointer: buildPointer(error), message: buildMessage(error) }
    found.set(`${validationError.pointer} ${validationError.message}`, validationError)
    if (found.size === MAX_VALIDATION_ERRORS) break
  }
  return [...found.values()]
}

/**
 * If a value matches no alternative, Ajv reports the errors of every alternative. If only one alternative is not null,
 * its errors are kept; otherwise only the error of the choice itself.
 */
function withoutAlternatives(errors: ErrorObject[]): ErrorObject[] {
  const choices = errors.filter(isChoice)
  if (choices.length === 0) return errors
  return errors.filter(error => {
    if (isChoice(error) && meantAlternative(error) !== null) return false
    return !choices.some(choice => error !== choice && isHiddenBy(choice, error))
  })
}

function isChoice({ keyword }: ErrorObject): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf'
}

function isHiddenBy(choice: ErrorObject, error: ErrorObject): boolean {
  const under = `${choice.schemaPath}/`
  if (!error.schemaPath.startsWith(under) || !error.instancePath.startsWith(choice.instancePath)) return false
  const meant = meantAlternative(choice)
  return meant === null || !error.schemaPath.startsWith(`${under}${meant}/`)
}

/** Index of the only alternative that is not null; null if there are several. */
function meantAlternative(choice: ErrorObject): number | null {
  const alternatives = choice.schema as Schema[]
  const others = alternatives.flatMap((schema, index) => (schema.type === 'null' ? [] : [index]))
  return others.length === 1 && alternatives.length > 1 && choice.data !== null ? others[0]! : null
}

function buildPointer({ keyword, instancePath, params }: ErrorObject): string {
  const child = keyword === 'required' ? params.missingProperty : params.additionalProperty
  return typeof child === 'string' ? `${instancePath}/${pointerToken(child)}` : instancePath
}

function buildMessage(error: ErrorObject): string {
  const { keyword, params, schema } = error
  switch (keyword) {
    case 'required':
      return 'is required'
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not a known field'
    case 'type':
      return `must be ${[params.type].flat().map(describeType).join(' or ')}`
    case 'enum':
      return `must be one of ${(schema as unknown[]).join(', ')}`
    case 'const':
      return `must be ${JSON.stringify(schema)}`
    case 'anyOf':
    case 'oneOf':
      return choiceMessage(schema as Schema[])
    case 'format':
      return formatMessage(String(schema))
    case 'pattern':
      return patternMessage(error.parentSchema as Schema)
    default:
      return limitMessage(keyword, Number(schema)) ?? error.message ?? 'is not valid'
  }
}

function describeType(type: string): string {
  return TYPE_WORDS[type] ?? type
}

function choiceMessage(alternatives: Schema[]): string {
  if (alternatives.every(alternative => 'const' in alternative))
    return `must be one of ${alternatives.map(alternative => String(alternative.const)).join(', ')}`
  const types = alternatives.flatMap(({ type }) => type ?? [])
  return types.length >= alternatives.length
    ? `must be ${[...new Set(types.map(type => describeType(String(type))))].join(' or ')}`
    : 'does not match any of the accepted formats'
}

function formatMessage(format: string): string {
  return `must be ${format === 'timestamp' ? TIME_FORMAT : `a valid ${format}`}`
}

/** A regular expression does not help a reader. */
function patternMessage({ examples }: Schema): string {
  const [example] = (examples ?? []) as unknown[]
  return example === undefined ? 'has an invalid format' : `must be like ${example}`
}

function limitMessage(keyword: string, limit: number): string | null {
  const characters = limit === 1 ? 'character' : 'characters'
  const items = limit === 1 ? 'item' : 'items'
  switch (keyword) {
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} ${characters}`
    case 'maxLength':
      return `must have at most ${limit} ${characters}`
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} ${items}`
    case 'maxItems':
      return `must have at most ${limit} ${items}`
    case 'minimum':
      return `must be at least ${limit}`
    case 'maximum':
      return `must be at most ${limit}`
    case 'exclusiveMinimum':
      return `must be more than ${limit}`
    case 'exclusiveMaximum':
      return `must be less than ${limit}`
    default:
      return null
  }
}
