/** Arguments of programs: from an archive that NumPy wrote, or random. */
import {
  bf16,
  bool,
  f16,
  f32,
  f64,
  fromNumbers,
  i32,
  i64,
  i8,
  toNumbers,
  u32,
  u8,
} from "tilewright";
import type { DType, HostArray } from "tilewright";
import type { Plan } from "tilewright/graph";

export type TensorType = Plan["parameters"][number];

/** By their names in StableHLO. */
const formats: { readonly [element: string]: DType } = {
  ...{ bf16, f16, f32, f64, i8, i32, i64 },
  ...{ i1: bool, ui8: u8, ui32: u32 },
};

export function dtypeOf({ element }: TensorType): DType {
  const found = formats[element];
  if (found === undefined) throw new Error(`no array has elements of ${element}`);
  return found;
}

export function countOf({ shape }: TensorType): number {
  return Math.max(
    1,
    shape.reduce((product, extent) => product * extent, 1),
  );
}

/** An array of an archive, in the format that the program wants: NumPy has no bf16. */
export function givenArray(
  file: { readonly [name: string]: HostArray },
  name: string,
  type: TensorType,
): HostArray {
  const key = Object.keys(file).find((each) => each === name || each.startsWith(`${name}.`));
  const array = key === undefined ? undefined : file[key];
  if (array === undefined) throw new Error(`the archive has no ${name}`);
  const dtype = dtypeOf(type);
  const numbers = toNumbers(array);
  return array.dtype === dtype ? array : fromNumbers(dtype, array.shape, [...numbers]);
}

/** Numbers that are drawn; larger arrays repeat them. */
const drawn = 65_521;
/** Integers are places in tables, as a rule. */
const mostInteger = 10_000;

/** An array of small random numbers, the same ones for the same place among a program's arguments. */
export function randomArray(type: TensorType, place: number): HostArray {
  const dtype = dtypeOf(type);
  const count = countOf(type);
  let state = place + 1;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const most = dtype.kind === "bool" ? 2 : dtype.bits === 8 ? 100 : mostInteger;
  const draw = (): number => (dtype.kind === "float" ? next() - 0.5 : Math.floor(most * next()));
  const numbers = Float64Array.from({ length: Math.min(drawn, count) }, draw);
  const all = new Float64Array(count);
  for (let i = 0; i < count; i++) all[i] = numbers[i % drawn] ?? 0;
  return fromNumbers(dtype, type.shape, all);
}
