/**
 * What a cubin says of its entries. It is an ELF file; the section `.nv.info.NAME` of an entry is a list of
 * attributes, of which some tell how it is launched:
 *
 *   04 17 0c 00   index (4 bytes)  ordinal (2)  offset (2)  flags (4)      a parameter: its bytes are flags >> 18
 *   04 10 0c 00   x (4)  y (4)  z (4)                                      .reqntid
 *   04 05 0c 00   x (4)  y (4)  z (4)                                      .maxntid
 *
 * Types are not kept, so a parameter of 1, 2, 4 or 8 bytes counts as bits, and any other as a structure.
 */
import type { Entry, EntryParameter } from "../emulator/api/module.ts";
import type { PtxType } from "../ptx/module.ts";

const magic = 0x464c457f;
const attributes = { requiredThreads: 0x10, maxThreads: 0x05, parameter: 0x17 } as const;
/** The form of an attribute whose value has a length; all others lie in four bytes. */
const sizedForm = 0x04;
const informationPrefix = ".nv.info.";
const bitTypes: ReadonlyMap<number, PtxType> = new Map<number, PtxType>([
  [1, "b8"],
  [2, "b16"],
  [4, "b32"],
  [8, "b64"],
]);

/** The entries, in the order of the file; undefined where the bytes are no cubin. */
export function cubinEntries(cubin: Uint8Array): readonly Entry[] | undefined {
  const view = new DataView(cubin.buffer, cubin.byteOffset, cubin.byteLength);
  try {
    if (view.getUint32(0, true) !== magic) return undefined;
    return sectionsOf(view)
      .filter(({ name }) => name.startsWith(informationPrefix))
      .map(({ name, offset, bytes }) =>
        entryOf(
          name.slice(informationPrefix.length),
          new DataView(cubin.buffer, cubin.byteOffset + offset, bytes),
        ),
      );
  } catch (error) {
    // A file that ends before what it promises.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

interface Section {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

function sectionsOf(view: DataView): readonly Section[] {
  const word = (at: number): number => Number(view.getBigUint64(at, true));
  const table = word(0x28);
  const entryBytes = view.getUint16(0x3a, true);
  const count = view.getUint16(0x3c, true);
  const names = word(table + view.getUint16(0x3e, true) * entryBytes + 0x18);
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * entryBytes;
    const name = textAt(view, names + view.getUint32(at, true));
    return { name, offset: word(at + 0x18), bytes: word(at + 0x20) };
  });
}

function textAt(view: DataView, start: number): string {
  let end = start;
  while (view.getUint8(end) !== 0) end += 1;
  return new TextDecoder().decode(
    new Uint8Array(view.buffer, view.byteOffset + start, end - start),
  );
}

function entryOf(name: string, view: DataView): Entry {
  const parameters = new Map<number, EntryParameter>();
  const triples = new Map<number, readonly number[]>();
  for (let at = 0; at < view.byteLength;) {
    const [form, attribute] = [view.getUint8(at), view.getUint8(at + 1)];
    const bytes = form === sizedForm ? view.getUint16(at + 2, true) : 0;
    const value = at + 4;
    if (form === sizedForm && attribute === attributes.parameter) {
      const ordinal = view.getUint16(value + 4, true);
      parameters.set(ordinal, parameterOf(ordinal, view.getUint32(value + 8, true) >>> 18));
    } else if (form === sizedForm && bytes === 12)
      triples.set(
        attribute,
        [0, 4, 8].map((offset) => view.getUint32(value + offset, true)),
      );
    at = value + bytes;
  }
  return {
    name,
    parameters: [...parameters].sort(([left], [right]) => left - right).map(([, each]) => each),
    requiredThreads: triples.get(attributes.requiredThreads),
    maxThreads: triples.get(attributes.maxThreads),
    requiredCluster: undefined,
  };
}

function parameterOf(ordinal: number, bytes: number): EntryParameter {
  const type = bitTypes.get(bytes);
  return {
    name: `parameter_${ordinal}`,
    type: type ?? "b8",
    count: type === undefined ? bytes : undefined,
    vector: undefined,
    bytes,
    pointer: undefined,
  };
}
