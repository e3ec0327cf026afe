/** Loops, branches, calls and scans, whose bodies are a function of arrays that is known as text and as arithmetic. */
import { scalarText, typed, typeOf } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { binaryOf } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { everyElement } from "./shared.ts";
import type { Draw } from "./shared.ts";

/** A function of arrays of one type: `text` has it of a value of one name, as one of another. */
interface Step {
  text(from: string, to: string): string;
  of(data: readonly Scalar[]): readonly Scalar[];
}

/** x with a constant, or with itself. */
function step(b: Builder, { element, shape }: Value): Step {
  const type = typeOf(element, shape);
  const [kind, f] = b.pick(Object.entries(binaryOf(element)));
  if (b.chance(3))
    return {
      text: (from, to) => `${to} = stablehlo.${kind} ${from}, ${from} : ${type}`,
      of: (data) => data.map((v) => f(v, v, element)),
    };
  const other = b.scalar(element);
  return {
    text: (from, to) =>
      `${to}k = stablehlo.constant dense<${shape.includes(0) ? "" : scalarText(element, other)}> : ${type} ` +
      `${to} = stablehlo.${kind} ${from}, ${to}k : ${type}`,
    of: (data) => data.map((v) => f(v, other, element)),
  };
}

/** A scalar of i32, as a constant of the program or a parameter. */
function count(b: Builder, value: number): string {
  const data = [BigInt(value)];
  return b.chance(2)
    ? b.constant("i32", [], data).name
    : b.parameter("i32", [], () => BigInt(value)).name;
}

/** So many turns of a loop: none, few, which may be written out, and more. */
const turns = [0, 1, 2, 5, 8, 9, 13];

export const whileLoop: Draw = (b) => {
  const x = b.any(everyElement);
  const trips = b.pick(turns);
  const body = step(b, x);
  let data = x.data;
  for (let turn = 0; turn < trips; turn++) data = body.of(data);
  const [start, limit] = [b.constant("i32", [], [0n]).name, count(b, trips)];
  const name = b.fresh();
  const type = typed(x);
  b.lines.push(
    `${name}:2 = stablehlo.while(%i = ${start}, %x = ${x.name}) : tensor<i32>, ${type}`,
    `  cond { %c = stablehlo.compare LT, %i, ${limit} : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }`,
    `  do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32> ${body.text("%x", "%y")} stablehlo.return %j, %y : tensor<i32>, ${type} }`,
  );
  b.values.push({ name: `${name}#0`, element: "i32", shape: [], data: [BigInt(trips)] });
  b.values.push({ ...x, name: `${name}#1`, data });
};

/** A loop over the rows of an array, as JAX prints scans: each row changes a state, and the states are the result. */
export const scan: Draw = (b) => {
  const x = b.any(everyElement, ({ shape }) => shape.length > 0 && (shape[0] ?? 0) > 0);
  const [rows = 1, ...rest] = x.shape;
  const row = { ...x, shape: rest };
  const state = b.value(x.element, rest);
  const [kind, f] = b.pick(Object.entries(binaryOf(x.element)));
  const width = state.data.length;
  let now = state.data;
  const all: Scalar[] = [];
  for (let i = 0; i < rows; i++) {
    now = now.map((v, k) => f(v, x.data[i * width + k] as Scalar, x.element));
    all.push(...now);
  }
  const zero = b.constant("i32", [], [0n]).name;
  const limit = count(b, rows);
  const [array, one] = [typed(x), typed(row)];
  const slab = typeOf(x.element, [1, ...rest]);
  const zeros = rest.map(() => `, ${zero}`).join("");
  const indices = x.shape.map(() => "tensor<i32>").join(", ");
  const name = b.fresh();
  b.lines.push(
    `${name}:3 = stablehlo.while(%i = ${zero}, %s = ${state.name}, %ys = ${x.name}) : tensor<i32>, ${one}, ${array}`,
    `  cond { %c = stablehlo.compare LT, %i, ${limit} : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }`,
    `  do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32>`,
    `    %d = stablehlo.dynamic_slice ${x.name}, %i${zeros}, sizes = [${[1, ...rest].join(", ")}] : (${array}, ${indices}) -> ${slab}`,
    `    %r = stablehlo.reshape %d : (${slab}) -> ${one} %t = stablehlo.${kind} %s, %r : ${one} %u = stablehlo.reshape %t : (${one}) -> ${slab}`,
    `    %w = stablehlo.dynamic_update_slice %ys, %u, %i${zeros} : (${array}, ${slab}, ${indices}) -> ${array} stablehlo.return %j, %t, %w : tensor<i32>, ${one}, ${array} }`,
  );
  b.values.push({ ...row, name: `${name}#1`, data: now });
  b.values.push({ ...x, name: `${name}#2`, data: all });
};

export const branch: Draw = (b) => {
  const x = b.any(everyElement);
  const isIf = b.chance(2);
  const steps = Array.from({ length: isIf ? 2 : b.between(1, 4) }, () => step(b, x));
  const index = isIf
    ? b.parameter("i1", [], () => BigInt(b.below(2)))
    : b.parameter("i32", [], () => BigInt(b.between(-1, 4)));
  const at = Number(index.data[0]);
  // The first branch of an if is for what holds; the last one of a case for what is out of range.
  const taken = isIf ? 1 - at : at < 0 || at >= steps.length ? steps.length - 1 : at;
  const regions = steps.map(
    (each) => `{ ${each.text(x.name, "%y")} stablehlo.return %y : ${typed(x)} }`,
  );
  b.result(
    x.element,
    x.shape,
    steps[taken]?.of(x.data) ?? [],
    (name, type) =>
      `${name} = "stablehlo.${isIf ? "if" : "case"}"(${index.name}) (${regions.join(", ")}) : (${typed(index)}) -> ${type}`,
  );
};

export const call: Draw = (b) => {
  const x = b.any(everyElement);
  const body = step(b, x);
  const type = typed(x);
  const name = `@f${b.functions.length}`;
  b.functions.push(
    `func.func private ${name}(%a: ${type}) -> ${type} { ${body.text("%a", "%y")} return %y : ${type} }`,
  );
  const result = (own: string): string =>
    `${own} = func.call ${name}(${x.name}) : (${type}) -> ${type}`;
  b.result(x.element, x.shape, body.of(x.data), result);
};
