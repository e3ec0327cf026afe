/** The functions on files as programs call them: what each argument is, checked before anything is read or written. */
import { dtypes } from "../formats/dtype.ts";
import { isHostArray } from "../formats/hostarray.ts";
import { checkedCall, fieldsOf, optional } from "../support/checked-call.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { isReadable, isRecord } from "../support/options.ts";
import * as npy from "./npy.ts";
import * as npz from "./npz.ts";
import * as safetensors from "./safetensors.ts";
import * as scaled from "./scaled-arrays.ts";

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

const text: ArgumentKind = { expected: "a text", holds: (value) => typeof value === "string" };

const scaledArray: ArgumentKind = {
  expected: "an array of the host in a format with scales, as scaledHostArray gives it",
  holds: (value) => {
    const names = ["format", "elements", "scales", "axis", "layout", "globalScale"];
    const { format, elements, scales } = fieldsOf(value, names);
    return format !== undefined && isArray(elements) && isArray(scales);
  },
};

const schemaOptions: ArgumentKind = optional({
  expected: "{ schema }, the name of a schema",
  holds: (value) => {
    const { schema } = fieldsOf(value, ["schema"]);
    const isName = schema === undefined || typeof schema === "string";
    return isRecord(value) && isReadable(value, ["schema"]) && isName;
  },
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

/** Opens a `.npy` file and reads its header; the elements are read by the array that it gives. */
export const openNpy = checkedLater("openNpy", [source, options], npy.openNpy);
/**
 * Reads an array from a `.npy` file.
 *
 * @example
 * ```ts
 * import { toNumbers, fromNumbers, f32 } from "tilewright";
 * import { readNpy, writeNpy } from "tilewright/files";
 *
 * const bytes = writeNpy(fromNumbers(f32, [3], [1, 2, 3]));
 * console.log(toNumbers(await readNpy(bytes))); // 1, 2, 3
 * ```
 */
export const readNpy = checkedLater("readNpy", [source, options], npy.readNpy);
/** The bytes of a `.npy` file with an array. */
export const writeNpy = checked("writeNpy", [array], npy.writeNpy);
/** Opens a `.npz` file and reads its list of arrays. */
export const openNpz = checkedLater("openNpz", [source, npzOptions], npz.openNpz);
/** Reads all arrays of a `.npz` file, by name. */
export const readNpz = checkedLater("readNpz", [source, npzOptions], npz.readNpz);
/** The bytes of a `.npz` file with arrays by name, uncompressed. */
export const writeNpz = checked("writeNpz", [arrays], npz.writeNpz);
/** The bytes of a safetensors file with arrays by name, and notes where some are given. */
export const writeSafetensors = checked(
  "writeSafetensors",
  [arrays, metadata],
  safetensors.writeSafetensors,
);
/** The array in a format with scales that arrays of a file stand for, by any of the schemas. */
export const scaledArrayFrom = checked("scaledArrayFrom", [arrays, text], scaled.scaledArrayFrom);
/** The arrays that stand for one in a format with scales, to be written to a file. */
export const scaledArrayEntries = checked(
  "scaledArrayEntries",
  [text, scaledArray, schemaOptions],
  scaled.scaledArrayEntries,
);
