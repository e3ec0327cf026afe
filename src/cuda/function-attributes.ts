/** What the driver tells of a function, and what a function must be allowed before it is launched: CUfunction_attribute. */

/** Numbers of the attributes. */
export const functionAttributes = {
  localBytes: 3,
  registers: 4,
  dynamicSharedBytes: 8,
  nonPortableClusters: 14,
} as const;

/** Blocks of a cluster that every GPU with clusters takes. */
const portableCluster = 8;

/** Attributes and values: more shared memory and larger clusters than by default must be asked for. */
export function allowances({
  sharedBytes,
  cluster,
}: {
  readonly sharedBytes: number;
  readonly cluster: number;
}): readonly (readonly [attribute: number, value: number])[] {
  return [
    ...(sharedBytes > 0 ? [[functionAttributes.dynamicSharedBytes, sharedBytes] as const] : []),
    ...(cluster > portableCluster ? [[functionAttributes.nonPortableClusters, 1] as const] : []),
  ];
}
