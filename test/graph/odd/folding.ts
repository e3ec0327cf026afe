/** Reductions, windows and sorts, of one array or of several together. */
import { at, flatOf, genericLine, list, places, size, typed, typeOf } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { compared, isFloat, isSigned, settled } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { combiner, everyElement, numbers, smallNumbers } from "./shared.ts";
import type { Draw } from "./shared.ts";

/** What a fold may be by: exact, and of floats such as do not depend on the order. */
const folds = (element: string): readonly string[] =>
  isFloat(element)
    ? ["maximum", "minimum"]
    : ["add", "multiply", "maximum", "minimum", "and", "or", "xor"];

export const reduce: Draw = (b) => {
  const x = b.any(everyElement);
  const exact = isFloat(x.element) && !x.element.startsWith("f8") && b.chance(2);
  const operand = exact ? smallNumbers(b, x.element, x.shape) : x;
  const dims = b.some(x.shape.length);
  const init = exact ? smallNumbers(b, x.element, []) : b.value(x.element, []);
  const { text, f } = combiner(b, x.element, exact ? ["add"] : folds(x.element));
  const shape = x.shape.filter((_, axis) => !dims.includes(axis));
  const data: Scalar[] = new Array<Scalar>(size(shape)).fill(init.data[0] as Scalar);
  for (const place of places(x.shape)) {
    const to = flatOf(
      shape,
      place.filter((_, axis) => !dims.includes(axis)),
    );
    data[to] = f(data[to] as Scalar, at(operand, place));
  }
  b.op(
    "reduce",
    [operand, init],
    `dimensions = ${list(dims)}`,
    { element: x.element, shape, data },
    text,
  );
};

/** The greatest or least element with its place, as JAX prints argmax, and other folds of pairs. */
export const reducePair: Draw = (b) => {
  const x = b.any(numbers);
  // A comparison with NaN is false both ways: what is left then depends on which pairs are compared, which is nobody's to say.
  if (x.data.some((each) => Number.isNaN(each))) return;
  const index = b.pick(["i32", "i64", "ui8"]);
  const places2 = b.parameter(index, x.shape, () => settled(index, BigInt(b.between(0, 9))));
  const dims = b.some(x.shape.length);
  const [p, q] = [b.value(x.element, []), b.value(index, [])];
  const direction = b.pick(["LT", "GT", "LE", "GE"] as const);
  const both = b.chance(2);
  const [s, t] = [typeOf(x.element, []), typeOf(index, [])];
  const text = [
    `{ ^bb0(%a: ${s}, %i: ${t}, %b: ${s}, %j: ${t}):`,
    `%c = stablehlo.compare ${direction}, %a, %b : (${s}, ${s}) -> tensor<i1>`,
    `%e = stablehlo.compare EQ, %a, %b : (${s}, ${s}) -> tensor<i1>`,
    `%f = stablehlo.compare LT, %i, %j : (${t}, ${t}) -> tensor<i1>`,
    `%g = stablehlo.and %e, %f : tensor<i1>`,
    both ? `%h = stablehlo.or %c, %g : tensor<i1>` : `%h = stablehlo.or %c, %c : tensor<i1>`,
    `%r = stablehlo.select %c, %a, %b : tensor<i1>, ${s}`,
    `%k = stablehlo.select %h, %i, %j : tensor<i1>, ${t}`,
    `stablehlo.return %r, %k : ${s}, ${t} }`,
  ].join(" ");
  const shape = x.shape.filter((_, axis) => !dims.includes(axis));
  const data: Scalar[] = new Array<Scalar>(size(shape)).fill(p.data[0] as Scalar);
  const found: Scalar[] = new Array<Scalar>(size(shape)).fill(q.data[0] as Scalar);
  for (const place of places(x.shape)) {
    const to = flatOf(
      shape,
      place.filter((_, axis) => !dims.includes(axis)),
    );
    const [a, i, c, j] = [
      data[to] as Scalar,
      found[to] as Scalar,
      at(x, place),
      at(places2, place),
    ];
    const first = compared(direction, a, c, x.element) === 1n;
    const tie = both && a === c && i < j;
    data[to] = first ? a : c;
    found[to] = first || tie ? i : j;
  }
  const left = b.fresh();
  const both2 = `(${typeOf(x.element, shape)}, ${typeOf(index, shape)})`;
  const line = genericLine(
    `${left}:2`,
    "reduce",
    [x, places2, p, q],
    `dimensions = ${list(dims)}`,
    text,
    both2,
  );
  b.lines.push(line);
  b.values.push({ name: `${left}#0`, element: x.element, shape, data });
  b.values.push({ name: `${left}#1`, element: index, shape, data: found });
};

interface Windowed {
  readonly attributes: string;
  readonly shape: readonly number[];
  /** Where in the operand the elements of a window lie; undefined where there is padding. */
  taken(place: readonly number[]): readonly (readonly number[] | undefined)[];
}

function windowed(b: Builder, shape: readonly number[], dilate: boolean): Windowed | undefined {
  const windows = shape.map(() => b.between(1, 3));
  const strides = shape.map(() => b.between(1, 3));
  const base = shape.map(() => (dilate ? b.between(1, 2) : 1));
  const spread = shape.map(() => (dilate ? b.between(1, 2) : 1));
  const dilated = shape.map((e, i) => (e === 0 ? 0 : (e - 1) * (base[i] as number) + 1));
  const padding = shape.map((_, i) => {
    const low = dilate ? b.between(-2, 3) : b.between(0, 2);
    const high = dilate ? b.between(-2, 3) : b.between(0, 2);
    return [low, Math.max(high, -low - (dilated[i] as number))] as const;
  });
  const result = shape.map((_, i) => {
    const padded = (dilated[i] as number) + (padding[i]?.[0] ?? 0) + (padding[i]?.[1] ?? 0);
    const window = ((windows[i] as number) - 1) * (spread[i] as number) + 1;
    return padded === 0 || padded < window
      ? 0
      : Math.floor((padded - window) / (strides[i] as number)) + 1;
  });
  return {
    attributes: [
      `window_dimensions = ${list(windows)}`,
      `window_strides = ${list(strides)}`,
      ...(dilate ? [`base_dilations = ${list(base)}`, `window_dilations = ${list(spread)}`] : []),
      `padding = dense<${shape.length === 0 ? "" : `[${padding.map((each) => `[${each.join(", ")}]`).join(", ")}]`}> : tensor<${shape.length}x2xi64>`,
    ].join(", "),
    shape: result,
    taken: (place) =>
      places(windows).map((k) => {
        const from = place.map(
          (p, i) =>
            (p * (strides[i] as number) +
              (k[i] as number) * (spread[i] as number) -
              (padding[i]?.[0] ?? 0)) /
            (base[i] as number),
        );
        return from.every((p, i) => Number.isInteger(p) && p >= 0 && p < (shape[i] as number))
          ? from.map((p) => p + 0)
          : undefined;
      }),
  };
}

export const reduceWindow: Draw = (b) => {
  const x = b.any(everyElement);
  const how = windowed(b, x.shape, true);
  if (how === undefined) return;
  const exact = isFloat(x.element) && !x.element.startsWith("f8") && b.chance(2);
  const operand = exact ? smallNumbers(b, x.element, x.shape) : x;
  const init = exact ? smallNumbers(b, x.element, []) : b.value(x.element, []);
  const { text, f } = combiner(b, x.element, exact ? ["add"] : folds(x.element));
  const data = places(how.shape).map((place) =>
    how.taken(place).reduce<Scalar>(
      // Padding is the initial value: it is combined as an element is.
      (sum, from) => f(sum, from === undefined ? (init.data[0] as Scalar) : at(operand, from)),
      init.data[0] as Scalar,
    ),
  );
  b.op(
    "reduce_window",
    [operand, init],
    how.attributes,
    { element: x.element, shape: how.shape, data },
    text,
  );
};

export const selectAndScatter: Draw = (b) => {
  const x = b.any(numbers, ({ shape }) => size(shape) > 0);
  const how = windowed(b, x.shape, false);
  if (how === undefined) return;
  const exact = isFloat(x.element);
  const source = exact ? smallNumbers(b, x.element, how.shape) : b.value(x.element, how.shape);
  const init = exact ? smallNumbers(b, x.element, []) : b.value(x.element, []);
  const direction = b.pick(["GE", "GT", "LE", "LT"] as const);
  const type = typeOf(x.element, []);
  const { text, f } = combiner(b, x.element, exact ? ["add"] : folds(x.element));
  if (exact && x.element.startsWith("f8")) return;
  const data: Scalar[] = new Array<Scalar>(x.data.length).fill(init.data[0] as Scalar);
  for (const place of places(how.shape)) {
    let chosen: readonly number[] | undefined;
    for (const from of how.taken(place)) {
      if (from === undefined) continue;
      if (chosen === undefined || compared(direction, at(x, chosen), at(x, from), x.element) === 0n)
        chosen = from;
    }
    if (chosen === undefined) continue;
    const flat = flatOf(x.shape, chosen);
    data[flat] = f(data[flat] as Scalar, at(source, place));
  }
  b.op(
    "select_and_scatter",
    [x, source, init],
    how.attributes,
    { ...x, data },
    `{ ^bb0(%a: ${type}, %b: ${type}): %c = stablehlo.compare ${direction}, %a, %b : (${type}, ${type}) -> tensor<i1> stablehlo.return %c : tensor<i1> }, ${text}`,
  );
};

/** An operand that decides the order, before those that come after it. */
interface Key {
  readonly operand: number;
  readonly falls: boolean;
  readonly total: boolean;
}

/** The region of a sort: the first key decides, and where it is equal the next one. */
function comparator(all: readonly Value[], keys: readonly Key[]): string {
  const types = all.map((each) => typeOf(each.element, []));
  const lines: string[] = [];
  let sofar = "";
  for (const [k, { operand, falls, total }] of [...keys.entries()].reverse()) {
    const [type, l, r] = [types[operand], `%l${operand}`, `%r${operand}`];
    const element = (all[operand] as Value).element;
    const kind = isFloat(element)
      ? total
        ? "TOTALORDER"
        : "FLOAT"
      : isSigned(element)
        ? "SIGNED"
        : "UNSIGNED";
    const compareOf = (direction: string, name: string): string =>
      `${name} = stablehlo.compare ${direction}, ${l}, ${r}, ${kind} : (${type}, ${type}) -> tensor<i1>`;
    lines.push(compareOf(falls ? "GT" : "LT", `%c${k}`));
    if (sofar !== "") {
      lines.push(compareOf("EQ", `%e${k}`));
      lines.push(`%s${k} = stablehlo.select %e${k}, ${sofar}, %c${k} : tensor<i1>, tensor<i1>`);
    }
    sofar = sofar === "" ? `%c${k}` : `%s${k}`;
  }
  const parameters = types.flatMap((type, i) => [`%l${i}: ${type}`, `%r${i}: ${type}`]);
  return `{ ^bb0(${parameters.join(", ")}): ${lines.join(" ")} stablehlo.return ${sofar} : tensor<i1> }`;
}

export const sort: Draw = (b) => {
  const x = b.any(everyElement, ({ shape }) => shape.length > 0);
  const count = b.between(1, 3);
  const all = [
    x,
    ...Array.from({ length: count - 1 }, () => b.value(b.pick(everyElement), x.shape)),
  ];
  const axis = b.below(x.shape.length);
  // Keys in an order of their own, each rising or falling; an element that is no key goes along.
  const keys = b
    .order(count)
    .slice(0, b.between(1, count))
    .map((operand) => {
      const { element } = all[operand] as Value;
      return { operand, falls: b.chance(2), total: isFloat(element) && b.chance(2) };
    });
  const region = comparator(all, keys);
  // NaN has no place in the order of LT: what a sort makes of it is nobody's promise.
  if (keys.some(({ operand, total }) => !total && all[operand]?.data.some((v) => Number.isNaN(v))))
    return;
  const before = (i: number, j: number): boolean => {
    for (const { operand, falls, total } of keys) {
      const { data, element } = all[operand] as Value;
      const [p, q] = [data[i] as Scalar, data[j] as Scalar];
      if (compared("EQ", p, q, element, total) === 1n) continue;
      return compared(falls ? "GT" : "LT", p, q, element, total) === 1n;
    }
    return false;
  };
  const results = all.map(() => new Array<Scalar>(x.data.length));
  const outer = x.shape.map((e, i) => (i === axis ? Math.min(e, 1) : e));
  for (const place of places(outer)) {
    const flats = Array.from({ length: x.shape[axis] as number }, (_, k) =>
      flatOf(
        x.shape,
        place.map((p, i) => (i === axis ? k : p)),
      ),
    );
    const sorted = [...flats].sort((i, j) => (before(i, j) ? -1 : before(j, i) ? 1 : 0));
    flats.forEach((to, k) =>
      results.forEach((result, o) => (result[to] = all[o]?.data[sorted[k] as number] as Scalar)),
    );
  }
  const name = b.fresh();
  const attributes = `dimension = ${b.chance(3) ? axis - x.shape.length : axis} : i64, is_stable = true`;
  b.lines.push(
    genericLine(
      count === 1 ? name : `${name}:${count}`,
      "sort",
      all,
      attributes,
      region,
      `(${all.map(typed).join(", ")})`,
    ),
  );
  all.forEach((each, o) =>
    b.values.push({
      ...each,
      name: count === 1 ? name : `${name}#${o}`,
      data: results[o] as Scalar[],
    }),
  );
};
