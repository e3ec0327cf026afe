/**
 * Lists of arrays among a launch's arguments: each of their arrays is an argument of its own from here on, by the name of its parameter.
 *
 *   { xs: [a, b], y }      { "xs[0]": a, "xs[1]": b, y }
 */
import { isHostArray } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { KernelInterface } from "../ir/node.ts";
import { listedName, listOf } from "../ir/listed-names.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";

/** How many arrays each list of the kernel has, by its name; empty for most kernels. */
function listsOf({ parameters }: KernelInterface): ReadonlyMap<string, number> {
  const lists = new Map<string, number>();
  for (const { name } of parameters) {
    const of = listOf(name);
    if (of !== undefined) lists.set(of.list, Math.max(lists.get(of.list) ?? 0, of.index + 1));
  }
  return lists;
}

/** The arguments with every list taken apart; each is checked against its parameter afterwards. */
export function withoutLists(
  kernel: KernelInterface,
  args: { readonly [name: string]: unknown },
): { readonly [name: string]: unknown } {
  const lists = listsOf(kernel);
  if (lists.size === 0) return args;
  const entries = Object.entries(args).flatMap(([name, value]): (readonly [string, unknown])[] => {
    const count = lists.get(name);
    if (count === undefined) return [[name, value]];
    return listed(kernel, name, count, value).map((each, index) => [listedName(name, index), each]);
  });
  return Object.fromEntries(entries);
}

function listed(
  kernel: KernelInterface,
  name: string,
  count: number,
  value: unknown,
): readonly unknown[] {
  const isList = Array.isArray(value);
  if (isList && value.length === count) return value;
  throw new TilewrightError({
    code: "TW4034",
    message: isList
      ? `argument ${name} of kernel ${kernel.name} is a list of ${value.length} arrays`
      : `argument ${name} of kernel ${kernel.name} is not a list of arrays`,
    expected: `a list of ${count} arrays`,
    found: isList ? `${value.length} of them` : optionText(value),
    notes: [{ message: "the kernel is declared here", location: kernel.location }],
  });
}

/** Results with the arrays of every list put together again. */
export function withLists<T>(results: readonly (readonly [string, T])[]): {
  readonly [name: string]: T | readonly T[];
} {
  const found: { [name: string]: T | T[] } = {};
  const lists = new Map<string, T[]>();
  for (const [name, result] of results) {
    const of = listOf(name);
    if (of === undefined) {
      found[name] = result;
      continue;
    }
    const list = lists.get(of.list) ?? [];
    lists.set(of.list, list);
    found[of.list] = list;
    list.push(result);
  }
  return found;
}

/** Results by the names of their parameters: the arrays of a list one by one. */
export function listedResults(results: {
  readonly [name: string]: HostArray | readonly HostArray[];
}): { readonly [name: string]: HostArray } {
  const entries = Object.entries(results).flatMap(([name, result]) =>
    isHostArray(result)
      ? [[name, result] as const]
      : result.map((each, index) => [listedName(name, index), each] as const),
  );
  return Object.fromEntries(entries);
}
