/** Calls of pipelines and what belongs to them. */
import * as library from "tilewright";
import type { BadCall } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";
import type { Parameter } from "./junk.ts";
import { inKernel } from "./surroundings.ts";
import type { Body } from "./surroundings.ts";

type Untyped = (...values: readonly unknown[]) => unknown;
const untyped = library as unknown as { readonly [name: string]: Untyped };

/** A call in a body, with one argument replaced; `others` are those before and behind it. */
function inBody(
  name: string,
  title: string,
  replaced: Parameter,
  call: (item: unknown, body: Body) => unknown,
): BadCall {
  return {
    name: `${name} (${title})`,
    parameters: [replaced],
    call: (item) => {
      inKernel((body) => call(item, body));
    },
  };
}

const body = parameter(() => () => undefined, "function");
const steps = ({ steps: run }: { readonly steps: (each: () => void) => void }): void => {
  run(() => undefined);
};

function specialized(...values: readonly unknown[]): void {
  library.kernel({ name: "k", threads: ["a", "b"] }, () => {
    untyped["warpSpecialized"]?.(...values);
  });
}

export const pipelineCalls: readonly BadCall[] = [
  inBody(
    "block",
    "index",
    parameter(() => 0, "zero", "negative", "huge"),
    (item) => untyped["block"]?.(item, 4),
  ),
  inBody(
    "block",
    "size",
    parameter(() => 4),
    (item) => untyped["block"]?.(0, item),
  ),
  inBody(
    "ring",
    "depth",
    parameter(() => 3),
    (item) => untyped["ring"]?.(item),
  ),
  inBody(
    "pipeline",
    "options",
    parameter(() => ({ grid: { k: 4 } })),
    (item) => untyped["pipeline"]?.(item, () => undefined),
  ),
  inBody("pipeline", "body", body, (item) => untyped["pipeline"]?.({ grid: { k: 4 } }, item)),
  inBody(
    "tiles",
    "grid",
    parameter(() => ({ i: 4 })),
    (item) => untyped["tiles"]?.(item),
  ),
  inBody("tiles", "options", options(), (item) => untyped["tiles"]?.({ i: 4 }, item)),
  inBody(
    "pingPong",
    "part",
    parameter(() => 0, "zero", "negative", "nan", "infinite", "fraction", "huge"),
    (part, { ready }) => untyped["pingPong"]?.({ barriers: ready, part, count: 2 }),
  ),
  inBody(
    "storeThrough",
    "starts",
    parameter(() => [0], "numbers"),
    (starts, { shared, tile, out }) =>
      untyped["storeThrough"]?.(shared.reshape([1, 8]), tile, out, starts),
  ),
  {
    name: "warpSpecialized (options)",
    parameters: [parameter(() => ({ grid: { k: 4 } }))],
    call: (item) => {
      specialized(item, steps);
    },
  },
  {
    name: "warpSpecialized (body)",
    parameters: [parameter(() => steps)],
    call: (item) => {
      specialized({ grid: { k: 4 } }, item);
    },
  },
];
