/**
 * Names that users give to further inputs and outputs, beside those that kernels and plans have for things of their own. A user need not know
 * these, and which kernel is used is the plan's decision: what would be called alike is called otherwise in kernels.
 *
 *   bias   bias           index   index_           index_   index__
 *
 * `support/reserved-names.ts` does the same for whole operations, from outside: its plans are made anew for every operation, while those of products are found by
 * the text of what was asked for, and their functions see users' names as they are.
 */

/** Axes of grids, program threads, arrays, barriers and semaphores of the kernels of products. */
const ownNames: ReadonlySet<string> = new Set([
  ...["index", "rank", "down", "across", "layer", "i", "j", "tile", "group"],
  ...["copy", "first", "second", "third", "fourth"],
  ...["a", "b", "out", "parts", "result", "stored", "activations"],
  ...["full", "empty", "ahead", "added", "handed", "told"],
  ...["tile_numbers", "tile_posted", "tile_taken"],
  ...["tops", "columns", "ends", "groups", "count", "next", "groupSizes"],
]);

/** Slots of shared memory that what a prologue reads travels through. */
export function tilesName(input: string): string {
  return `${input}Tiles`;
}

/** What kernels call a further input or output of this name. */
export function parameterName(name: string): string {
  const stem = name.replace(/_+$/u, "");
  return ownNames.has(stem) || stem.endsWith(tilesName("")) ? `${name}_` : name;
}

/** Arrays of a plan by these names, as kernels call them. */
export function namedArguments(names: readonly string[]): {
  readonly [parameter: string]: { readonly argument: string };
} {
  return Object.fromEntries(names.map((name) => [parameterName(name), { argument: name }]));
}

/** Memory of a plan that is no array of the user's: a name that none of these can have. */
export const partsOfK = "parts of k";
