/** Records by name, whose keys TypeScript forgets when they are listed. */

/** The keys of a record, in order. */
export function namesOf<K extends string>(record: { readonly [N in K]: unknown }): readonly K[] {
  return Object.keys(record).filter((key): key is K => key in record);
}

/** A record with the same keys. */
export function mapRecord<K extends string, V, W>(
  record: { readonly [N in K]: V },
  change: (value: V, name: K) => W,
): { readonly [N in K]: W } {
  const entries = namesOf(record).map((name) => [name, change(record[name], name)] as const);
  return Object.fromEntries(entries) as { readonly [N in K]: W };
}
