/**
 * Draws plans that are right: nothing is read before it is written, and what a product that may still run reads or writes is left alone until a commit of it was
 * waited for. Products on exactly one place follow each other, and need no wait.
 *
 *   multiply a → s, multiply a → s, (commit, wait), load s, loop { multiply a → s }, (commit, wait), refill a
 */
import { bf16, f16, f32, f8e4m3fn, f8e5m2, i32, i8, tf32, u8 } from "../../../src/index.ts";
import type { DType } from "../../../src/index.ts";
import { accessColumns, usualTmemShape } from "../../../src/ir/infer/tensor-memory.ts";
import { tmemShapes } from "../../../src/ir/ops/tensor-memory.ts";
import type { TmemShape } from "../../../src/ir/ops/tensor-memory.ts";
import type { Random } from "../../../src/support/random.ts";
import { mostlySmall } from "../parts.ts";
import { versions } from "./plan.ts";
import type {
  Adds,
  BarrierName,
  Group,
  Left,
  Output,
  Place,
  Plan,
  Region,
  Right,
  Statement,
  Sums,
} from "./plan.ts";

type Formats = readonly [a: DType, b: DType, sum: DType];

const formats: readonly Formats[] = [
  [bf16, bf16, f32],
  [f16, f16, f32],
  [f16, f16, f16],
  [tf32, tf32, f32],
  [f8e4m3fn, f8e4m3fn, f32],
  [f8e4m3fn, f8e5m2, f32],
  [f8e5m2, f8e4m3fn, f16],
  [i8, i8, i32],
  [i8, u8, i32],
  [u8, i8, i32],
];

const scaledFormats: readonly Formats[] = [
  [f8e4m3fn, f8e4m3fn, f32],
  [f8e5m2, f8e4m3fn, f32],
  [f8e4m3fn, f8e5m2, f32],
];

/** Columns of tensor memory. */
const allColumns = 512;

function groupColumns(group: Group): number {
  const { sums, lefts, depth, a, isScaled } = group;
  const ofSums = sums.reduce((total, { tiles, columns }) => total + tiles * columns, 0);
  const inTensor = lefts.filter(({ place }) => place === "tensor").length;
  return (
    ofSums +
    inTensor * Math.ceil((depth * a.bits) / 32) +
    (isScaled ? 8 * Math.ceil(depth / 128) : 0)
  );
}

/** Columns of products are multiples of this. */
export function grainOf(rows: number, { kind }: DType): number {
  return rows === 128 || kind !== "float" ? 16 : 8;
}

/** Shapes of accesses to so many columns of elements. */
function shapesOf(
  warps: number,
  rows: number,
  width: number,
  { bits }: DType,
): readonly TmemShape[] {
  const shares = (warps / 4) * Math.max(1, 32 / bits);
  const isPower = (width & (width - 1)) === 0;
  return tmemShapes.filter(
    (shape) =>
      isPower && (rows === 128 || shape !== "32x32b") && width >= shares * accessColumns[shape],
  );
}

/** One of the shapes, or none where the usual one can be. */
function drawShape(
  shapes: readonly TmemShape[],
  rows: number,
  random: Random,
): TmemShape | undefined {
  const mayBeUsual = shapes.includes(usualTmemShape(rows)) && random.below(3) === 0;
  return mayBeUsual ? undefined : random.pick(shapes);
}

/** Formats of a product, its rows, and whether its blocks have scales. */
export function drawFormats(random: Random) {
  const isScaled = random.below(6) === 0;
  const [a, b, sum] = random.pick(isScaled ? scaledFormats : formats);
  const rows = isScaled || random.below(3) > 0 ? 128 : 64;
  return { isScaled, a, b, sum, rows };
}

function drawGroup(random: Random, warps: number): Group {
  const { isScaled, a, b, sum, rows } = drawFormats(random);
  const grain = grainOf(rows, a);
  const step = isScaled ? 32 : 256 / a.bits;
  const depth = step * (isScaled ? random.pick([1, 2, 4]) : mostlySmall([1, 2, 3, 4], random));
  const width = (): number => grain * mostlySmall([1, 2, 3, 4, 5, 8], random);
  const rights = Array.from({ length: 1 + random.below(2) }, (): Right => {
    return { columns: width(), along: random.below(2) === 0 };
  });
  const widest = Math.max(...rights.map(({ columns }) => columns));
  const sums = Array.from({ length: 1 + random.below(2) }, (): Sums => {
    const columns = widest + grain * random.below(3);
    return { tiles: mostlySmall([1, 2, 3], random), columns };
  });
  const lefts = Array.from({ length: 1 + random.below(2) }, (): Left => {
    const shapes = shapesOf(warps, rows, depth, a);
    const inTensor = shapes.length > 0 ? (["tensor"] as const) : [];
    const place = random.pick(["along", "across", ...inTensor] as const);
    return place === "tensor" ? { place, shape: drawShape(shapes, rows, random) } : { place };
  });
  return { a, b, sum, rows, depth, sums, lefts, rights, isScaled };
}

/** A product that may still run, or a copy of scales. */
interface Running {
  readonly into: Region | undefined;
  readonly touches: readonly string[];
  committed: BarrierName | undefined;
}

interface State {
  readonly running: Running[];
  /** Columns that are known to be written, of each tile of each buffer. */
  readonly written: Map<string, Uint8Array>;
  readonly hasScales: Set<number>;
  /** Barriers with a commit that nobody has waited for. */
  readonly told: Set<BarrierName>;
}

interface Surroundings {
  readonly depth: number;
  /** Turns of the loop around; 1 outside of loops. */
  readonly turns: number;
}

function copyOf({ running, written, hasScales, told }: State): State {
  return {
    running: [...running],
    written: new Map([...written].map(([name, columns]) => [name, columns.slice()])),
    hasScales: new Set(hasScales),
    told: new Set(told),
  };
}

const bufferName = ({ group, sums }: Region): string => `sums ${group} ${sums}`;

function sameTile(left: Place, right: Place): boolean | undefined {
  if (left.turns || right.turns) return undefined;
  return left.base === right.base;
}

/** Whether products on two places may touch, without being on exactly the same one. */
function mayClash(left: Region, right: Region): boolean {
  if (bufferName(left) !== bufferName(right)) return false;
  const tile = sameTile(left.tile, right.tile);
  if (tile === false) return false;
  const isApart =
    left.column + left.width <= right.column || right.column + right.width <= left.column;
  if (isApart) return false;
  const isSame = left.column === right.column && left.width === right.width;
  // Products on one tile are in order, and so are those of a turn.
  return !(isSame && (tile === true || JSON.stringify(left.tile) === JSON.stringify(right.tile)));
}

class Draft {
  readonly #random: Random;
  readonly #groups: readonly Group[];
  readonly #warps: number;
  readonly #outputs: Output[] = [];
  #left: number;

  constructor(random: Random, groups: readonly Group[], warps: number, statements: number) {
    this.#random = random;
    this.#groups = groups;
    this.#warps = warps;
    this.#left = statements;
  }

  plan(isWhole: boolean): Plan {
    const written = new Map<string, Uint8Array>();
    this.#groups.forEach(({ sums }, group) => {
      sums.forEach(({ tiles, columns }, at) => {
        for (let tile = 0; tile < tiles; tile += 1)
          written.set(`sums ${group} ${at} ${tile}`, new Uint8Array(columns));
      });
    });
    const state: State = { running: [], written, hasScales: new Set(), told: new Set() };
    const statements: Statement[] = [];
    while (this.#left > 0) this.#statement(statements, state, { depth: 0, turns: 1 });
    this.#landAll(statements, state);
    this.#groups.forEach((group, at) => {
      this.#readAll(statements, state, group, at);
    });
    return {
      ...{ warps: this.#warps, groups: this.#groups, statements, isWhole },
      outputs: this.#outputs,
    };
  }

  /** Reads what was written in the end, whatever came before. */
  #readAll(into: Statement[], state: State, { sums }: Group, group: number): void {
    sums.forEach(({ tiles }, at) => {
      for (let tile = 0; tile < tiles; tile += 1) {
        const region = this.#readable(state, group, at, { base: tile, turns: false });
        if (region !== undefined) this.#load(into, region, 1);
      }
    });
  }

  #statement(into: Statement[], state: State, here: Surroundings): void {
    this.#left -= 1;
    const random = this.#random;
    const nested =
      here.depth < 2
        ? [
            () => this.#chain(into, state, here),
            () => this.#rounds(into, state, here),
            () => this.#branch(into, state, here),
          ]
        : [];
    random.pick([
      ...[1, 2, 3].map(() => () => this.#multiply(into, state, here)),
      () => this.#store(into, state, here),
      () => this.#loadSome(into, state, here),
      () => this.#refill(into, state),
      () => this.#land(into, state, "done"),
      () => this.#split(into, state),
      ...nested,
    ])();
  }

  /** A tile, and columns of it; those of a product where a width is given. */
  #region(here: Surroundings, group: number, width?: number): Region {
    const random = this.#random;
    const own = this.#groupAt(group);
    const at = random.below(own.sums.length);
    const { tiles, columns } = own.sums[at] ?? { tiles: 1, columns: 8 };
    const grain = grainOf(own.rows, own.a);
    const size = width ?? columns;
    return {
      ...{ group, sums: at, width: size },
      tile: {
        base: random.below(tiles),
        turns: here.turns > 1 && tiles > 1 && random.below(3) === 0,
      },
      column: grain * random.below((columns - size) / grain + 1),
      isDynamic: random.below(4) === 0,
    };
  }

  #groupAt(at: number): Group {
    const group = this.#groups[at];
    if (group === undefined) throw new Error(`no group ${at}`);
    return group;
  }

  #tilesOf({ group, sums, tile }: Region): readonly string[] {
    const { tiles = 1 } = this.#groupAt(group).sums[sums] ?? {};
    const all = Array.from({ length: tiles }, (_, at) => at);
    return (tile.turns ? all : [tile.base]).map((at) => `sums ${group} ${sums} ${at}`);
  }

  #isWritten(state: State, region: Region): boolean {
    const { column, width } = region;
    return this.#tilesOf(region).every((name) =>
      state.written
        .get(name)
        ?.subarray(column, column + width)
        .every(Boolean),
    );
  }

  #write(state: State, region: Region): void {
    // What is written in turn, not all turns may write.
    if (region.tile.turns) return;
    for (const name of this.#tilesOf(region))
      state.written.get(name)?.fill(1, region.column, region.column + region.width);
  }

  /** Waits for what touches any of these, or products that clash with a place. */
  #settle(into: Statement[], state: State, clashes: (running: Running) => boolean): void {
    if (state.running.some(clashes)) this.#landAll(into, state);
  }

  #landAll(into: Statement[], state: State): void {
    if (state.told.has("later")) this.#waitFor(into, state, "later");
    if (state.running.length > 0) this.#land(into, state, "done");
  }

  #land(into: Statement[], state: State, barrier: BarrierName): void {
    if (state.told.has(barrier)) this.#waitFor(into, state, barrier);
    this.#commit(into, state, barrier);
    this.#waitFor(into, state, barrier);
  }

  #commit(into: Statement[], state: State, barrier: BarrierName): void {
    into.push({ kind: "commit", barrier });
    state.told.add(barrier);
    for (const running of state.running) running.committed ??= barrier;
  }

  #waitFor(into: Statement[], state: State, barrier: BarrierName): void {
    into.push({ kind: "wait", barrier });
    state.told.delete(barrier);
    const left = state.running.filter(({ committed }) => committed !== barrier);
    state.running.splice(0, state.running.length, ...left);
  }

  /** A commit whose wait comes later, or such a wait. */
  #split(into: Statement[], state: State): void {
    if (state.told.has("later")) this.#waitFor(into, state, "later");
    else this.#commit(into, state, "later");
  }

  #touching(names: readonly string[]): (running: Running) => boolean {
    return ({ touches }) => touches.some((name) => names.includes(name));
  }

  #multiply(into: Statement[], state: State, here: Surroundings, adds?: Adds): void {
    const random = this.#random;
    const group = random.below(this.#groups.length);
    const { lefts, rights, isScaled } = this.#groupAt(group);
    const [left, right] = [random.below(lefts.length), random.below(rights.length)];
    const region = this.#region(here, group, rights[right]?.columns ?? 8);
    if (isScaled && (!state.hasScales.has(group) || random.below(5) === 0))
      this.#scales(into, state, group);
    this.#settle(into, state, ({ into: other }) => other !== undefined && mayClash(other, region));
    const isWritten = this.#isWritten(state, region);
    const later: readonly Adds[] = here.turns > 1 && !region.tile.turns ? ["later"] : [];
    const choices: readonly Adds[] = isWritten
      ? ["always", "always", "never", "flag", ...later]
      : ["never", ...later];
    into.push({ kind: "multiply", into: region, left, right, adds: adds ?? random.pick(choices) });
    this.#write(state, region);
    const touches = [
      `left ${group} ${left}`,
      `right ${group} ${right}`,
      bufferName(region),
      ...(isScaled ? [`scales ${group}`] : []),
    ];
    state.running.push({ into: region, touches, committed: undefined });
  }

  #shapes({ group, width }: Region): readonly TmemShape[] {
    const { rows, sum } = this.#groupAt(group);
    return shapesOf(this.#warps, rows, width, sum);
  }

  /** Columns that an access may have: a power of two of them, somewhere in a region. */
  #part(region: Region): Region | undefined {
    const random = this.#random;
    const most = Math.floor(Math.log2(Math.min(64, region.width)));
    const width = 2 ** Math.max(most - random.below(3), 0);
    const column = region.column + random.below(region.width - width + 1);
    const part = { ...region, width, column };
    return this.#shapes(part).length > 0 ? part : undefined;
  }

  #accessShape(region: Region): TmemShape | undefined {
    return drawShape(this.#shapes(region), this.#groupAt(region.group).rows, this.#random);
  }

  #store(into: Statement[], state: State, here: Surroundings): void {
    const group = this.#random.below(this.#groups.length);
    const region = this.#part(this.#region(here, group));
    if (region === undefined) return;
    this.#settle(into, state, this.#touching([bufferName(region)]));
    const negates = this.#isWritten(state, region) && this.#random.below(2) === 0;
    into.push({ kind: "store", into: region, shape: this.#accessShape(region), negates });
    this.#write(state, region);
  }

  /** Some columns of a tile that are written. */
  #readable(state: State, group: number, sums: number, tile: Place): Region | undefined {
    const { columns = 0 } = this.#groupAt(group).sums[sums] ?? {};
    const whole: Region = { group, sums, tile, column: 0, isDynamic: false, width: columns };
    for (let attempt = 0; attempt < 6; attempt += 1) {
      const part = this.#part(whole);
      if (part !== undefined && this.#isWritten(state, part)) return part;
    }
    return undefined;
  }

  #loadSome(into: Statement[], state: State, here: Surroundings): void {
    const group = this.#random.below(this.#groups.length);
    const { sums, tile } = this.#region(here, group);
    const region = this.#readable(state, group, sums, tile);
    if (region === undefined) return;
    this.#settle(into, state, this.#touching([bufferName(region)]));
    this.#load(into, region, here.turns);
  }

  #load(into: Statement[], from: Region, turns: number): void {
    const output = this.#outputs.push({ group: from.group, turns, width: from.width }) - 1;
    into.push({ kind: "load", from, shape: this.#accessShape(from), output });
  }

  #refill(into: Statement[], state: State): void {
    const random = this.#random;
    const group = random.below(this.#groups.length);
    const own = this.#groupAt(group);
    const side = random.pick(["left", "right"] as const);
    const factor = random.below(side === "left" ? own.lefts.length : own.rights.length);
    this.#settle(into, state, this.#touching([`${side} ${group} ${factor}`]));
    into.push({ kind: "refill", group, side, factor, version: random.below(versions) });
  }

  #scales(into: Statement[], state: State, group: number): void {
    this.#settle(into, state, this.#touching([`scales ${group}`]));
    into.push({ kind: "scales", group, version: this.#random.below(versions) });
    state.hasScales.add(group);
    state.running.push({ into: undefined, touches: [`scales ${group}`], committed: undefined });
  }

  /** A loop of products alone: those on one place follow each other from turn to turn. */
  #chain(into: Statement[], state: State, here: Surroundings): void {
    if (here.turns > 1) return;
    const random = this.#random;
    const turns = 2 + random.below(3);
    const [body, inside] = [[] as Statement[], copyOf(state)];
    this.#prepareScales(into, inside);
    state.hasScales.clear();
    for (const group of inside.hasScales) state.hasScales.add(group);
    state.running.splice(0, state.running.length, ...inside.running);
    state.told.clear();
    for (const barrier of inside.told) state.told.add(barrier);
    for (let count = 1 + random.below(3); count > 0; count -= 1) {
      const before = body.length;
      const kept = copyOf(inside);
      this.#multiply(body, inside, { ...here, turns });
      // One that would have to wait is left out, and so is one in each turn on another tile.
      const added = body.slice(before);
      const isPlain =
        added.length === 1 &&
        added.every((each) => each.kind === "multiply" && !each.into.tile.turns);
      if (isPlain) continue;
      body.length = before;
      inside.running.splice(0, inside.running.length, ...kept.running);
      for (const [name, columns] of kept.written) inside.written.set(name, columns);
      inside.told.clear();
      for (const barrier of kept.told) inside.told.add(barrier);
    }
    if (body.length === 0) return;
    const isDynamic = random.below(2) === 0;
    into.push({ kind: "loop", trips: turns, isDynamic, body });
    state.running.splice(0, state.running.length, ...inside.running);
    for (const [name, columns] of inside.written) state.written.set(name, columns);
  }

  #prepareScales(into: Statement[], state: State): void {
    this.#groups.forEach(({ isScaled }, group) => {
      if (isScaled && !state.hasScales.has(group)) this.#scales(into, state, group);
    });
  }

  /** A loop of anything, which begins and ends with nothing running. */
  #rounds(into: Statement[], state: State, here: Surroundings): void {
    if (here.turns > 1) return;
    const random = this.#random;
    this.#landAll(into, state);
    if (state.told.has("done")) this.#waitFor(into, state, "done");
    const turns = 2 + random.below(2);
    const [body, inside] = [[] as Statement[], copyOf(state)];
    for (let count = 1 + random.below(4); count > 0; count -= 1)
      this.#statement(body, inside, { depth: here.depth + 1, turns });
    this.#landAll(body, inside);
    if (inside.told.has("done")) this.#waitFor(body, inside, "done");
    if (body.length === 0) return;
    into.push({ kind: "loop", trips: turns, isDynamic: random.below(2) === 0, body });
    for (const [name, columns] of inside.written) state.written.set(name, columns);
    for (const group of inside.hasScales) state.hasScales.add(group);
  }

  /** What is written under a condition is not known to be. */
  #branch(into: Statement[], state: State, here: Surroundings): void {
    const random = this.#random;
    this.#landAll(into, state);
    const [body, inside] = [[] as Statement[], copyOf(state)];
    for (let count = 1 + random.below(3); count > 0; count -= 1)
      this.#statement(body, inside, { ...here, depth: here.depth + 1 });
    const endsRunning = random.below(2) === 0 && inside.told.size === 0;
    if (!endsRunning) this.#landAll(body, inside);
    if (body.length === 0) return;
    into.push({ kind: "when", holds: random.below(2) === 0, body });
    if (endsRunning) state.running.push(...inside.running);
  }
}

export function drawPlan(random: Random): Plan {
  const warps = random.pick([4, 4, 4, 8]);
  const groups: Group[] = [];
  const count = mostlySmall([1, 2], random);
  for (let left = allColumns; groups.length < count;) {
    const group = drawGroup(random, warps);
    if (groupColumns(group) > left) continue;
    left -= groupColumns(group);
    groups.push(group);
  }
  const isWhole = random.below(2) === 0;
  for (;;) {
    const plan = new Draft(random, groups, warps, 3 + random.below(14)).plan(isWhole);
    if (plan.outputs.length > 0) return plan;
  }
}
