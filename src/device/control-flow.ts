/**
 * Loops and branches that a device decides by itself, over work of any kind: bound launches of a program, or what a back end
 * makes of them.
 *
 *   while p { body }      condition, which makes p; body           again while p holds
 *   branch i [a, b, c]    one of the branches                      the last where i is none of them
 */

/** A loop or a choice over prepared work, by what lies in memory when it comes to it. */
export type Control<W, A> = {
  /** A predicate, or the index of a branch. */
  readonly selector: A;
  /** Whether that is one byte, of which true is index 0; else an i32. An index out of range is the last. */
  readonly isBool: boolean;
} & (
  | {
      readonly kind: "while";
      /** Makes the predicate, before each turn. */
      readonly condition: readonly W[];
      readonly body: readonly W[];
    }
  | { readonly kind: "branch"; readonly branches: readonly (readonly W[])[] }
);

/** The same over other work, which looks at other memory. */
export function mapControl<W, A, V, B>(
  control: Control<W, A>,
  selector: B,
  map: (works: readonly W[]) => readonly V[],
): Control<V, B> {
  const { isBool } = control;
  if (control.kind === "branch")
    return { kind: "branch", selector, isBool, branches: control.branches.map(map) };
  const [condition, body] = [map(control.condition), map(control.body)];
  return { kind: "while", selector, isBool, condition, body };
}

/** All work of it. */
export function worksOf<W>(control: Control<W, unknown>): readonly W[] {
  return control.kind === "while"
    ? [...control.condition, ...control.body]
    : control.branches.flat();
}
