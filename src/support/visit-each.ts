/**
 * Going over lists that are frozen, as those of all nodes are. V8's own methods that take a function have a fast way through lists that
 * may still change and ask its runtime for every item of a frozen one; a place and a length are as fast in both.
 */
export function visitEach<T>(items: readonly T[], visit: (item: T, place: number) => void): void {
  for (let place = 0; place < items.length; place += 1) visit(items[place] as T, place);
}
