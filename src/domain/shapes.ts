import type { JsonObject } from './json/json.ts'
import { type TSchema, type TSchemaOptions, Type } from './typebox.ts'

/** Parts of schemas. */
export const Nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])
export const NullableText = Nullable(Type.String())
export const Timestamp = Type.String({ format: 'timestamp', examples: ['2026-01-31T09:30:00Z'] })
export const NullableTimestamp = Nullable(Timestamp)
export const Uuid = Type.String({ format: 'uuid' })

/** An object with arbitrary fields. */
export const OpenObject = (options: TSchemaOptions = {}) => Type.Unsafe<JsonObject>(Type.Object({}, options))

export const Count = Type.Integer({ minimum: 0 })
