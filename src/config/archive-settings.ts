import { setting, withoutDefault } from './setting.ts'
import { archiveUrl, duration, httpUrl, line } from './values.ts'

/** Where events and conversions are archived; for S3 with the variables that its own tools read. */
export const archiveSettings = {
  archiveUrl: withoutDefault({
    name: 'KONTOR_ARCHIVE_URL',
    meaning:
      'Where events and conversions are written as Parquet files, from the first start with it on: a directory (`file:///srv/archive`) or a bucket (`s3://bucket/prefix`, with the AWS_… variables).',
    expects: 'file:///directory or s3://bucket/prefix, for example file:///srv/archive',
    read: archiveUrl,
  }),
  archiveFlushMs: setting({
    name: 'KONTOR_ARCHIVE_FLUSH',
    default: '60s',
    meaning: 'How often files of the archive are closed. Shorter makes it fresher, and the files smaller.',
    expects: 'a time from 1s to 1h, for example 60s',
    read: duration(1_000, 3_600_000),
  }),
  awsEndpointUrl: withoutDefault({
    name: 'AWS_ENDPOINT_URL',
    meaning: 'Where S3 is, unless it is that of AWS (MinIO, R2, …).',
    expects: 'an http or https address, for example https://minio.internal:9000',
    read: httpUrl,
  }),
  awsRegion: withoutDefault({
    name: 'AWS_REGION',
    meaning: 'The region of the bucket; without it AWS_DEFAULT_REGION, else us-east-1.',
    expects: 'the name of a region, for example eu-central-1',
    read: line,
  }),
  awsDefaultRegion: withoutDefault({
    name: 'AWS_DEFAULT_REGION',
    meaning: 'The region where AWS_REGION is not set.',
    expects: 'the name of a region, for example eu-central-1',
    read: line,
  }),
  awsAccessKeyId: withoutDefault({
    name: 'AWS_ACCESS_KEY_ID',
    meaning: 'The key that may put objects into the bucket.',
    expects: 'a key id without blanks',
    read: line,
  }),
  awsSecretAccessKey: withoutDefault({
    name: 'AWS_SECRET_ACCESS_KEY',
    meaning: 'Its secret.',
    expects: 'a secret without blanks',
    read: line,
    show: () => '(hidden)',
  }),
  awsSessionToken: withoutDefault({
    name: 'AWS_SESSION_TOKEN',
    meaning: 'The token of temporary credentials.',
    expects: 'a token without blanks',
    read: (text: string) => (/^[\x21-\x7e]{1,4000}$/.test(text) ? text : undefined),
    show: () => '(hidden)',
  }),
}
