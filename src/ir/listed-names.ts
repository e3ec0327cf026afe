/** Names of parameters that are arrays of a list: `xs[0]`, `xs[1]` … Names that users give have no brackets, so that none is taken for one. */

export function listedName(list: string, index: number): string {
  return `${list}[${index}]`;
}

/** The list that a parameter is of, and which of its arrays it is. */
export function listOf(
  parameter: string,
): { readonly list: string; readonly index: number } | undefined {
  const [, list, index] = /^(.*)\[(\d+)\]$/.exec(parameter) ?? [];
  return list === undefined ? undefined : { list, index: Number(index) };
}
