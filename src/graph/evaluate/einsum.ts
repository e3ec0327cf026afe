/** einsum by its formula: one axis a letter, summed over the letters that the result lacks. */
import type { TensorType } from "../ops/index.ts";
import { emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import { binaryForms } from "./elementwise/binary.ts";
import { conversion } from "./elementwise/convert.ts";
import { chooseForm } from "./elementwise/forms.ts";
import { reader, settler, writer } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { indicesOf, placeOf, stridesOf } from "./strides.ts";

export function* einsum(
  operands: readonly Tensor[],
  config: string,
  type: TensorType,
): Steps<Tensor | undefined> {
  const [inputs = "", output = ""] = config.replaceAll(/\s/g, "").split("->");
  const labels = inputs.split(",");
  if (!/^[a-zA-Z,]*$/.test(inputs) || labels.length !== operands.length) return undefined;
  const extents = new Map<string, number>();
  for (const [i, letters] of labels.entries())
    for (const [axis, letter] of [...letters].entries())
      extents.set(letter, operands[i]?.shape[axis] ?? 1);
  const summed = [...extents.keys()].filter((letter) => !output.includes(letter));
  const letters = [...output, ...summed];
  const add = chooseForm(binaryForms["stablehlo.add"], type.element);
  const multiply = chooseForm(binaryForms["stablehlo.multiply"], type.element);
  if (add === undefined || multiply === undefined) return undefined;
  const strides = operands.map(({ shape }, i) => {
    const own = stridesOf(shape);
    const of = [...(labels[i] ?? "")];
    return letters.map((letter) =>
      of.reduce((sum, each, axis) => sum + (each === letter ? (own[axis] as number) : 0), 0),
    );
  });
  const readers = operands.map((operand) => {
    const convert = conversion(operand.element, type.element);
    const read = reader(operand);
    return (place: number) => convert(read(place));
  });
  const result = emptyTensor(type);
  const own = stridesOf(type.shape);
  const outputStrides = letters.map((_, i) => own[i] ?? 0);
  const write = writer(type.element, result.data);
  const readResult = reader(result);
  const settle = settler(type.element);
  let work = 0;
  for (const index of indicesOf(letters.map((letter) => extents.get(letter) ?? 1))) {
    const factors = readers.map((read, i) => read(placeOf(index, strides[i] as readonly number[])));
    const product = factors.reduce<Scalar>(
      (left, right, i) => (i === 0 ? right : settle(multiply(left, right))),
      factors[0] as Scalar,
    );
    const target = placeOf(index, outputStrides);
    write(target, add(readResult(target), product));
    work += 8;
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return result;
}
