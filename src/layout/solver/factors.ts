/**
 * Factors: tables of costs over groups, and the two operations of the search on them. Groups are
 * named by their index; a size says how many candidates a group has left.
 *
 *   minimising x out of  f(x, y) + g(x)        choosing x = 1 in  f(x, y)
 *
 *        y  0  1         x g                        y  0  1
 *     x 0   5  0       0   1       y  0  1             4  2
 *       1   4  2       1   0          4  1
 *                                     ^  ^ min(5+1, 4+0), min(0+1, 2+0)
 */
import type { Clause } from "./network.ts";

export interface Factor {
  /** Groups in the order of the table's places, the last varying fastest. */
  readonly scope: readonly number[];
  readonly data: Float64Array;
  /** Some entry is infinite: what could take part in a conflict. */
  readonly hard: boolean;
  /** The clause it is the table of, or the factors it was made from. */
  readonly origin: Clause | readonly Factor[];
}

/** What sums are made of. */
type Table = Pick<Factor, "scope" | "data">;

/** How many steps of a group's stride lie between neighbours along it; 0 where it is not in scope. */
function strideOf(factor: Table, group: number, sizes: readonly number[]): number {
  const place = factor.scope.indexOf(group);
  if (place < 0) return 0;
  let stride = 1;
  for (let later = place + 1; later < factor.scope.length; later++) {
    stride *= sizes[factor.scope[later] as number] as number;
  }
  return stride;
}

/** Of several groups. Lists grow by `push` where tables are gone through: what `map` makes changes once its caller is optimised. */
function stridesOf(
  factor: Table,
  groups: readonly number[],
  sizes: readonly number[],
): readonly number[] {
  const strides: number[] = [];
  for (const group of groups) strides.push(strideOf(factor, group, sizes));
  return strides;
}

function isHard(data: Float64Array): boolean {
  for (let entry = 0; entry < data.length; entry++) if (data[entry] === Infinity) return true;
  return false;
}

/** Every entry is infinite: there is no choice. */
export function isHopeless(data: Float64Array): boolean {
  for (let entry = 0; entry < data.length; entry++) if (data[entry] !== Infinity) return false;
  return true;
}

export function leastEntry(data: Float64Array): number {
  let least = Infinity;
  for (let entry = 0; entry < data.length; entry++) {
    const cost = data[entry] as number;
    if (cost < least) least = cost;
  }
  return least;
}

/** The least sum of the factors over the candidates of one group, for each choice of the others. */
export function minimiseOut(
  group: number,
  others: readonly number[],
  factors: readonly Factor[],
  sizes: readonly number[],
): Factor {
  const tables = joined(factors, sizes);
  const candidates = sizes[group] ?? 0;
  // Neighbours along the last of the others are done together: that is where the time goes.
  const outer = others.slice(0, -1);
  const last = others.at(-1);
  const width = last === undefined ? 1 : (sizes[last] as number);
  const rows: Row[] = [];
  for (const table of tables) {
    const own = strideOf(table, group, sizes);
    const step = last === undefined ? 0 : strideOf(table, last, sizes);
    rows.push({ data: table.data, own, step, strides: stridesOf(table, outer, sizes), offset: 0 });
  }
  const extents: number[] = [];
  const digits: number[] = [];
  let entries = width;
  for (let place = 0; place < outer.length; place++) {
    const extent = sizes[outer[place] as number] as number;
    extents.push(extent);
    digits.push(0);
    entries *= extent;
  }
  const data = new Float64Array(entries).fill(Infinity);
  const least = leastOf[rows.length] ?? leastOfMany(new Float64Array(width));
  for (let entry = 0; entry < entries; entry += width) {
    least(data, entry, width, candidates, rows);
    for (let place = outer.length - 1; place >= 0; place--) {
      const extent = extents[place] as number;
      const wraps = (digits[place] as number) + 1 === extent;
      digits[place] = wraps ? 0 : (digits[place] as number) + 1;
      for (const row of rows) {
        const stride = row.strides[place] as number;
        row.offset += wraps ? stride - stride * extent : stride;
      }
      if (!wraps) break;
    }
  }
  return { scope: others, data, hard: isHard(data), origin: factors };
}

/** Where a table has its entries for a choice of all groups but two: the one that leaves, and the last of the others. */
interface Row {
  readonly data: Float64Array;
  /** Between candidates of the group that leaves. */
  readonly own: number;
  /** Between those of the last of the others. */
  readonly step: number;
  readonly strides: readonly number[];
  offset: number;
}

/** Lowers entries from a place on to the least sum of the tables. */
type Least = (
  data: Float64Array,
  from: number,
  width: number,
  candidates: number,
  rows: readonly Row[],
) => void;

/** Of any number of tables, with room for the sums of a row. */
function leastOfMany(sums: Float64Array): Least {
  return (data, from, width, candidates, rows) => {
    for (let candidate = 0; candidate < candidates; candidate++) {
      sums.fill(0);
      for (const { data: table, own, step, offset } of rows) {
        let at = offset + candidate * own;
        for (let place = 0; place < width; place++) {
          sums[place] = (sums[place] as number) + (table[at] as number);
          at += step;
        }
      }
      for (let place = 0; place < width; place++) {
        const sum = sums[place] as number;
        if (sum < (data[from + place] as number)) data[from + place] = sum;
      }
    }
  };
}

/** By the number of tables, for those that most sums have. */
const leastOf: readonly (Least | undefined)[] = [
  undefined,
  (data, from, width, candidates, [first]) => {
    const { data: table, own, step, offset } = first as Row;
    for (let candidate = 0; candidate < candidates; candidate++) {
      let at = offset + candidate * own;
      for (let entry = from; entry < from + width; entry++) {
        const sum = table[at] as number;
        if (sum < (data[entry] as number)) data[entry] = sum;
        at += step;
      }
    }
  },
  (data, from, width, candidates, [first, second]) => {
    const { data: left, own, step, offset } = first as Row;
    const { data: right, own: rightOwn, step: rightStep, offset: rightOffset } = second as Row;
    for (let candidate = 0; candidate < candidates; candidate++) {
      let at = offset + candidate * own;
      let rightAt = rightOffset + candidate * rightOwn;
      for (let entry = from; entry < from + width; entry++) {
        const sum = (left[at] as number) + (right[rightAt] as number);
        if (sum < (data[entry] as number)) data[entry] = sum;
        at += step;
        rightAt += rightStep;
      }
    }
  },
];

/** The same sum from fewer tables: those over no more groups than another are added to it, once for all entries. */
function joined(factors: readonly Factor[], sizes: readonly number[]): readonly Table[] {
  const tables: { readonly scope: readonly number[]; data: Float64Array; own: boolean }[] = [];
  const widestFirst = factors.toSorted((left, right) => right.scope.length - left.scope.length);
  for (const { scope, data } of widestFirst) {
    const wider = tables.find((table) => scope.every((group) => table.scope.includes(group)));
    if (wider === undefined) tables.push({ scope, data, own: false });
    else {
      if (!wider.own) wider.data = wider.data.slice();
      wider.own = true;
      addTo(wider, { scope, data }, sizes);
    }
  }
  return tables;
}

/** Adds a table to one over its groups and others. */
function addTo({ scope, data }: Table, added: Table, sizes: readonly number[]): void {
  const outer = scope.slice(0, -1);
  const last = scope.at(-1);
  const width = last === undefined ? 1 : (sizes[last] as number);
  const step = last === undefined ? 0 : strideOf(added, last, sizes);
  const strides = stridesOf(added, outer, sizes);
  const extents: number[] = [];
  const digits: number[] = [];
  for (let place = 0; place < outer.length; place++) {
    extents.push(sizes[outer[place] as number] as number);
    digits.push(0);
  }
  const table = added.data;
  let offset = 0;
  for (let from = 0; from < data.length; from += width) {
    let at = offset;
    for (let entry = from; entry < from + width; entry++) {
      data[entry] = (data[entry] as number) + (table[at] as number);
      at += step;
    }
    for (let place = outer.length - 1; place >= 0; place--) {
      const [stride, extent] = [strides[place] as number, extents[place] as number];
      offset += stride;
      digits[place] = (digits[place] as number) + 1;
      if (digits[place] !== extent) break;
      digits[place] = 0;
      offset -= stride * extent;
    }
  }
}

/** The sum of the tables for each candidate of a group, the others at the offsets. */
function addUp(
  sums: Float64Array,
  factors: readonly Table[],
  offsets: readonly number[],
  ownStrides: readonly number[],
): void {
  sums.fill(0);
  for (let which = 0; which < factors.length; which++) {
    const { data } = factors[which] as Table;
    const stride = ownStrides[which] as number;
    let offset = offsets[which] as number;
    for (let candidate = 0; candidate < sums.length; candidate++) {
      sums[candidate] = (sums[candidate] as number) + (data[offset] as number);
      offset += stride;
    }
  }
}

/** The first candidate of a group with the least sum of the factors, the others as chosen. */
export function bestCandidate(
  group: number,
  factors: readonly Factor[],
  sizes: readonly number[],
  choice: readonly number[],
): number {
  const sums = new Float64Array(sizes[group] ?? 0);
  const offsets = factors.map((factor) => {
    let offset = 0;
    for (const other of factor.scope) {
      offset =
        offset * (sizes[other] as number) + (other === group ? 0 : (choice[other] as number));
    }
    return offset;
  });
  const ownStrides = factors.map((factor) => strideOf(factor, group, sizes));
  addUp(sums, factors, offsets, ownStrides);
  return sums.indexOf(leastEntry(sums));
}

/** The factor with one of its groups fixed to a candidate. */
export function fixed(
  factor: Factor,
  group: number,
  candidate: number,
  sizes: readonly number[],
): Factor {
  const stride = strideOf(factor, group, sizes);
  const size = sizes[group] as number;
  const data = new Float64Array(factor.data.length / size);
  for (let entry = 0; entry < data.length; entry++) {
    const inner = entry % stride;
    data[entry] = factor.data[(entry - inner) * size + candidate * stride + inner] as number;
  }
  const scope = factor.scope.filter((other) => other !== group);
  return { scope, data, hard: isHard(data), origin: [factor] };
}

/** The clauses whose refusals a set of factors comes from. */
export function hardClauses(factors: readonly Factor[]): Clause[] {
  const clauses = new Set<Clause>();
  const visited = new Set<Factor>();
  const pending = [...factors];
  for (let factor = pending.pop(); factor !== undefined; factor = pending.pop()) {
    if (!factor.hard || visited.has(factor)) continue;
    visited.add(factor);
    if ("constraint" in factor.origin) clauses.add(factor.origin);
    else pending.push(...factor.origin);
  }
  return [...clauses];
}
