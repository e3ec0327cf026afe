/** The functions on files as programs call them: what each argument is, checked before anything is read or written. */
import { dtypes } from "../formats/dtype.ts";
import { isHostArray } from "../formats/hostarray.ts";
import { checkedCall, fieldsOf, optional } from "../support/checked-call.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { isReadable, isRecord } from "../support/options.ts";
import * as npy from "./npy.ts";
import * as npz from "./npz.ts";
import * as safetensors from "./safetensors.ts";

function checked<F extends (...values: never[]) => unknown>(
  name: string,
  kinds: readonly ArgumentKind[],
  call: F,
): F {
  return checkedCall(name, "TW4023", kinds, call);
}

const isArray = (value: unknown): boolean =>
  isHostArray(value) && isReadable(value, ["dtype", "shape", "data"]);

const array: ArgumentKind = {
  expected: "an array of the host, { dtype, shape, data }",
  holds: isArray,
};

const isNamed = (value: unknown, holds: (each: unknown) => boolean): boolean =>
  isRecord(value) && isReadable(value, Object.keys(value)) && Object.values(value).every(holds);

const arrays: ArgumentKind = {
  expected: "arrays of the host by name",
  holds: (value) => isNamed(value, isArray),
};

const metadata: ArgumentKind = optional({
  expected: "texts by name",
  holds: (value) => isNamed(value, (each) => typeof each === "string"),
});

/** Where bytes come from is checked when it is opened. */
const source: ArgumentKind = { expected: "a source", holds: () => true };

const options: ArgumentKind = optional({
  expected: "{ opaque }, with a number format",
  holds: (value) => {
    const { opaque } = fieldsOf(value, ["opaque"]);
    const isFormat = Object.values(dtypes).some((each) => each === opaque);
    return isRecord(value) && (opaque === undefined || isFormat) && isReadable(value, ["opaque"]);
  },
});

const npzOptions: ArgumentKind = optional({
  expected: "{ opaque, expandedLimit }, with a number format and a number of bytes",
  holds: (value, all) => {
    const { expandedLimit } = fieldsOf(value, ["expandedLimit"]);
    const isCount = typeof expandedLimit === "number" && expandedLimit >= 0;
    return options.holds(value, all) && (expandedLimit === undefined || isCount);
  },
});

/** An asynchronous function reports what is wrong with its arguments as it reports everything else. */
function checkedLater<A extends readonly unknown[], R>(
  name: string,
  kinds: readonly ArgumentKind[],
  call: (...values: A) => Promise<R>,
): (...values: A) => Promise<R> {
  const checking = checked(name, kinds, call as unknown as (...values: never[]) => Promise<R>);
  return async (...values) => checking(...(values as unknown as never[]));
}

export const openNpy = checkedLater("openNpy", [source, options], npy.openNpy);
export const readNpy = checkedLater("readNpy", [source, options], npy.readNpy);
export const writeNpy = checked("writeNpy", [array], npy.writeNpy);
export const openNpz = checkedLater("openNpz", [source, npzOptions], npz.openNpz);
export const readNpz = checkedLater("readNpz", [source, npzOptions], npz.readNpz);
export const writeNpz = checked("writeNpz", [arrays], npz.writeNpz);
export const writeSafetensors = checked(
  "writeSafetensors",
  [arrays, metadata],
  safetensors.writeSafetensors,
);
