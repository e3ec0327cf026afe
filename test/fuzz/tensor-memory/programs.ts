/** Random programs on tensor memory by one thread: drawn as a plan, traced, and computed beside it. */
import { f8e8m0fnu, fromNumbers, toNumbers } from "../../../src/index.ts";
import type { DType, HostArray } from "../../../src/index.ts";
import { elementCount } from "../../../src/formats/shape.ts";
import type { Random } from "../../../src/support/random.ts";
import type { Program } from "../parts.ts";
import { cellsOf, multiply } from "./compute.ts";
import type { Cells, Factor } from "./compute.ts";
import { drawPlan } from "./draft.ts";
import { applyRule, atomShape, leftShape, rightShape, versions } from "./plan.ts";
import type { Group, Plan, Region, Statement, StatementOf, StatementRules } from "./plan.ts";
import { tracedPlan } from "./trace.ts";

/** Numbers for a factor: small whole ones, or any, of which few are far from the others. */
export function drawNumbers(
  dtype: DType,
  count: number,
  isWhole: boolean,
  random: Random,
): Float64Array {
  const least = dtype.kind === "unsigned" ? 0 : -2;
  const far = random.below(4) === 0;
  return Float64Array.from({ length: count }, () => {
    if (isWhole || dtype.kind !== "float") return least + random.below(3 - least);
    const value = random.normal();
    return far && random.below(8) === 0 ? value * 2 ** (random.below(12) - 6) : value;
  });
}

/** Powers of two; whole ones for whole numbers. */
export function drawScales(count: number, isWhole: boolean, random: Random): Float64Array {
  return Float64Array.from({ length: count }, () =>
    isWhole ? 2 ** random.below(3) : 2 ** (random.below(13) - 6),
  );
}

/** A stored matrix by rows of k. */
export function byRowsOfK(
  values: Float64Array,
  [outer, inner]: readonly [number, number],
  isAlong: boolean,
): Float64Array {
  if (isAlong) return values;
  return Float64Array.from(values, (_, at) => {
    const [row, k] = [Math.floor(at / outer), at % outer];
    return values[k * inner + row] ?? NaN;
  });
}

/** Scales of atoms of 128 rows by 4 blocks, row by row. */
export function scalesOf(atoms: Float64Array, rows: number, depth: number): Float64Array {
  const blocks = depth / 32;
  const wide = Math.ceil(blocks / 4);
  return Float64Array.from({ length: rows * blocks }, (_, at) => {
    const [row, block] = [Math.floor(at / blocks), at % blocks];
    const atom = (row >> 7) * wide + (block >> 2);
    return atoms[atom * 512 + (row & 31) * 16 + ((row >> 5) & 3) * 4 + (block & 3)] ?? NaN;
  });
}

class Computed {
  readonly #plan: Plan;
  readonly #data: { readonly [name: string]: HostArray };
  readonly #flag: boolean;
  readonly #factors = new Map<string, Float64Array>();
  readonly #scales = new Map<string, Float64Array>();
  readonly #sums = new Map<string, Cells>();
  readonly outputs: readonly Cells[];

  constructor(plan: Plan, data: { readonly [name: string]: HostArray }, flag: boolean) {
    this.#plan = plan;
    this.#data = data;
    this.#flag = flag;
    this.outputs = plan.outputs.map(({ group, turns, width }) =>
      cellsOf(turns * this.#groupAt(group).rows * width),
    );
    plan.groups.forEach(({ lefts, rights }, group) => {
      lefts.forEach((_, at) => this.#fill(group, "left", at, 0));
      rights.forEach((_, at) => this.#fill(group, "right", at, 0));
    });
  }

  #groupAt(at: number): Group {
    const group = this.#plan.groups[at];
    if (group === undefined) throw new Error(`no group ${at}`);
    return group;
  }

  /** One version of an array. */
  #numbers(name: string, version: number, count: number): Float64Array {
    const array = this.#data[name];
    if (array === undefined) throw new Error(`no ${name}`);
    return toNumbers(array).subarray(version * count, (version + 1) * count);
  }

  #fill(at: number, side: "left" | "right", factor: number, version: number): void {
    const group = this.#groupAt(at);
    const shape = (side === "left" ? leftShape : rightShape)(group, factor);
    const isAlong =
      side === "left" ? group.lefts[factor]?.place !== "across" : group.rights[factor]?.along;
    const name = `${side === "left" ? "x" : "y"}${at}_${factor}`;
    const values = this.#numbers(name, version, elementCount(shape));
    this.#factors.set(`${side} ${at} ${factor}`, byRowsOfK(values, shape, isAlong === true));
  }

  statements(statements: readonly Statement[], turn: number): void {
    for (const statement of statements) applyRule(this.#rules, statement, turn);
  }

  #window({ group, sums, tile, column }: Region, turn: number) {
    const { rows, sums: all } = this.#groupAt(group);
    const { tiles = 1, columns = 1 } = all[sums] ?? {};
    const at = tile.turns ? (tile.base + turn) % tiles : tile.base;
    const name = `${group} ${sums} ${at}`;
    const cells = this.#sums.get(name) ?? cellsOf(rows * columns);
    this.#sums.set(name, cells);
    return { cells, start: column, stride: columns };
  }

  /** What a kind of statement does; commits and waits change no numbers. */
  readonly #rules: StatementRules<number> = {
    commit: () => undefined,
    wait: () => undefined,
    store: (statement, turn) => this.#store(statement, turn),
    multiply: (statement, turn) => this.#multiply(statement, turn),
    load: (statement, turn) => this.#load(statement, turn),
    refill: ({ group, side, factor, version }) => this.#fill(group, side, factor, version),
    scales: ({ group, version }) => this.#fillScales(group, version),
    loop: ({ trips, body }) => {
      for (let each = 0; each < trips; each += 1) this.statements(body, each);
    },
    when: ({ holds, body }, turn) => {
      if (holds) this.statements(body, turn);
    },
  };

  #store({ into, negates }: StatementOf<"store">, turn: number): void {
    const { cells, start, stride } = this.#window(into, turn);
    const { rows } = this.#groupAt(into.group);
    const given = this.#numbers(`z${into.group}_${into.sums}`, 0, rows * stride);
    for (let at = 0; at < rows * into.width; at += 1) {
      const place = start + Math.floor(at / into.width) * stride + (at % into.width);
      if (negates) cells.values[place] = -(cells.values[place] ?? NaN);
      else {
        cells.values[place] = given[place] ?? NaN;
        cells.bounds[place] = 0;
      }
    }
  }

  #load({ from, output }: StatementOf<"load">, turn: number): void {
    const { cells, start, stride } = this.#window(from, turn);
    const { rows } = this.#groupAt(from.group);
    const into = this.outputs[output];
    if (into === undefined) throw new Error(`no output ${output}`);
    for (let at = 0; at < rows * from.width; at += 1) {
      const place = start + Math.floor(at / from.width) * stride + (at % from.width);
      const to = turn * rows * from.width + at;
      into.values[to] = cells.values[place] ?? NaN;
      into.bounds[to] = cells.bounds[place] ?? NaN;
    }
  }

  #fillScales(group: number, version: number): void {
    for (const side of ["left", "right"] as const) {
      const shape = atomShape(this.#groupAt(group), side);
      const atoms = this.#numbers(`${side}Scales${group}`, version, elementCount(shape));
      const rows = 128 * (shape[0] ?? 1);
      this.#scales.set(`${side} ${group}`, scalesOf(atoms, rows, this.#groupAt(group).depth));
    }
  }

  #multiply({ into, left, right, adds }: StatementOf<"multiply">, turn: number): void {
    const group = this.#groupAt(into.group);
    const { rows, depth, sum } = group;
    const factor = (side: "left" | "right", at: number, dtype: DType): Factor => ({
      dtype,
      values: this.#factors.get(`${side} ${into.group} ${at}`) ?? new Float64Array(),
      scales: group.isScaled ? this.#scales.get(`${side} ${into.group}`) : undefined,
    });
    const product = {
      ...{ rows, depth, sum, columns: into.width, isWhole: this.#plan.isWhole },
      a: factor("left", left, group.a),
      b: factor("right", right, group.b),
      adds: { always: true, never: false, later: turn > 0, flag: this.#flag }[adds],
    };
    multiply(product, this.#window(into, turn));
  }
}

function dataOf(plan: Plan, random: Random): { readonly [name: string]: HostArray } {
  const data: { [name: string]: HostArray } = {};
  const { groups, outputs, isWhole } = plan;
  const draw = (name: string, dtype: DType, shape: readonly number[]): void => {
    const values = drawNumbers(dtype, elementCount(shape), isWhole, random);
    data[name] = fromNumbers(dtype, shape, values);
  };
  groups.forEach((group, at) => {
    group.lefts.forEach((_, each) =>
      draw(`x${at}_${each}`, group.a, [versions, ...leftShape(group, each)]),
    );
    group.rights.forEach((_, each) =>
      draw(`y${at}_${each}`, group.b, [versions, ...rightShape(group, each)]),
    );
    group.sums.forEach(({ columns }, each) =>
      draw(`z${at}_${each}`, group.sum, [group.rows, columns]),
    );
    if (!group.isScaled) return;
    for (const side of ["left", "right"] as const) {
      const shape = [versions, ...atomShape(group, side)];
      const scales = drawScales(elementCount(shape), isWhole, random);
      data[`${side}Scales${at}`] = fromNumbers(f8e8m0fnu, shape, scales);
    }
  });
  outputs.forEach(({ group, turns, width }, at) => {
    const { sum, rows } = groups[group] ?? {};
    if (sum === undefined || rows === undefined) throw new Error(`no group ${group}`);
    const shape = [turns, rows, width];
    data[`out${at}`] = fromNumbers(sum, shape, new Float64Array(elementCount(shape)));
  });
  return data;
}

/** The program of a plan, with what it gives. */
export function programOf(plan: Plan, random: Random): Program {
  const data = dataOf(plan, random);
  const flag = random.below(2);
  const computed = new Computed(plan, data, flag === 1);
  computed.statements(plan.statements, 0);
  return {
    kernel: tracedPlan(plan),
    dimensions: {},
    scalars: { flag, none: 0, start: 0 },
    data,
    near: Object.fromEntries(computed.outputs.map((cells, at) => [`out${at}`, cells] as const)),
    targets: ["sm_100a"],
  };
}

export function tensorMemory(random: Random): Program {
  return programOf(drawPlan(random), random);
}
