/** The kernel of a plan: factors in shared and tensor memory, sums in tensor memory, and an array for each load. */
import {
  all,
  barrier,
  commitShared,
  f8e8m0fnu,
  i32,
  kernel,
  loop,
  scalar,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tensor,
  tmem,
  when,
} from "../../../src/index.ts";
import type { Barrier, Ref, Scalar, Tile } from "../../../src/index.ts";
import type { Kernel } from "../../../src/ir/node.ts";
import type { TmemShape } from "../../../src/ir/ops/tensor-memory.ts";
import { applyRule, atomShape, leftShape, rightShape, versions } from "./plan.ts";
import type { Group, Plan, Region, Statement, StatementOf, StatementRules } from "./plan.ts";

/** The turn of the loop around. */
type Turn = Scalar<"i32"> | undefined;

type Given = { readonly [name: string]: unknown };

/** Named things of a group, each by a function of its shape. */
function declared(
  groups: readonly Group[],
  of: (group: Group, at: number) => readonly (readonly [name: string, spec: unknown])[],
): { readonly [name: string]: unknown } {
  return Object.fromEntries(groups.flatMap(of));
}

const inputsOf = (group: Group, at: number): readonly (readonly [string, unknown])[] => [
  ...group.lefts.map(
    (_, each) =>
      [`x${at}_${each}`, tensor(group.a, [versions, ...leftShape(group, each)])] as const,
  ),
  ...group.rights.map(
    (_, each) =>
      [`y${at}_${each}`, tensor(group.b, [versions, ...rightShape(group, each)])] as const,
  ),
  ...group.sums.map(
    ({ columns }, each) => [`z${at}_${each}`, tensor(group.sum, [group.rows, columns])] as const,
  ),
  ...(group.isScaled
    ? (["left", "right"] as const).map(
        (side) =>
          [`${side}Scales${at}`, tensor(f8e8m0fnu, [versions, ...atomShape(group, side)])] as const,
      )
    : []),
];

const scratchOf = (group: Group, at: number): readonly (readonly [string, unknown])[] => [
  ...group.lefts.map(({ place }, each) => {
    const shape = leftShape(group, each);
    const narrow = group.a.bits < 32;
    const spec =
      place === "tensor" ? tmem(group.a, shape, { packed: narrow }) : smem(group.a, shape);
    return [`left${at}_${each}`, spec] as const;
  }),
  ...group.rights.map(
    (_, each) => [`right${at}_${each}`, smem(group.b, rightShape(group, each))] as const,
  ),
  ...group.sums.map(
    ({ tiles, columns }, each) =>
      [`sums${at}_${each}`, tmem(group.sum, [tiles, group.rows, columns])] as const,
  ),
  ...(group.isScaled
    ? (["left", "right"] as const).flatMap((side) => {
        const shape = atomShape(group, side);
        const [rows = 1, blocks = 1] = shape;
        const inTensor = tmem(f8e8m0fnu, [128 * rows, 4 * blocks], { scales: true });
        return [
          [`${side}Atoms${at}`, smem(f8e8m0fnu, shape)] as const,
          [`${side}Tensor${at}`, inTensor] as const,
        ];
      })
    : []),
];

class Tracer {
  readonly #plan: Plan;
  readonly #given: Given;

  constructor(plan: Plan, given: Given) {
    this.#plan = plan;
    this.#given = given;
  }

  #ref(name: string): Ref {
    const found = this.#given[name];
    if (found === undefined) throw new Error(`no ${name}`);
    return found as Ref;
  }

  #scalar(name: string): Scalar<"i32"> {
    return this.#given[name] as Scalar<"i32">;
  }

  #groupAt(at: number): Group {
    const group = this.#plan.groups[at];
    if (group === undefined) throw new Error(`no group ${at}`);
    return group;
  }

  /** Everything is in place before the first statement. */
  begin(): void {
    this.#plan.groups.forEach((group, at) => {
      group.lefts.forEach(({ shape }, each) => {
        this.#fill(`left${at}_${each}`, `x${at}_${each}`, 0, shape);
      });
      group.rights.forEach((_, each) => {
        this.#fill(`right${at}_${each}`, `y${at}_${each}`, 0);
      });
    });
    commitShared();
  }

  #fill(to: string, from: string, version: number, shape?: TmemShape): void {
    const [into, source] = [this.#ref(to), this.#ref(from)];
    into.store(source.at(version).load() as never, shape && { shape });
  }

  #window({ group, sums, tile, column, isDynamic, width }: Region, turn: Turn): Ref {
    const { tiles = 1 } = this.#groupAt(group).sums[sums] ?? {};
    const at = tile.turns && turn !== undefined ? turn.add(tile.base).rem(tiles) : tile.base;
    const start = isDynamic ? this.#scalar("start").add(column) : column;
    return this.#ref(`sums${group}_${sums}`).at(at, all, slice(start, width));
  }

  statements(statements: readonly Statement[], turn?: Turn): void {
    for (const statement of statements) applyRule(this.#rules, statement, turn);
  }

  readonly #rules: StatementRules<Turn> = {
    store: (statement, turn) => this.#store(statement, turn),
    multiply: (statement, turn) => this.#multiply(statement, turn),
    commit: ({ barrier: name }) => tcgen05Commit(this.#given[name] as Barrier),
    wait: ({ barrier: name }) => (this.#given[name] as Barrier).wait(),
    load: ({ from, shape, output }, turn) => {
      const tile = this.#window(from, turn).load(shape && { shape });
      this.#ref(`out${output}`)
        .at(turn ?? 0)
        .store(tile as never);
    },
    refill: ({ group, side, factor, version }) => {
      const source = `${side === "left" ? "x" : "y"}${group}_${factor}`;
      const shape = side === "left" ? this.#groupAt(group).lefts[factor]?.shape : undefined;
      this.#fill(`${side}${group}_${factor}`, source, version, shape);
      commitShared();
    },
    scales: ({ group, version }) => {
      for (const side of ["left", "right"] as const)
        this.#fill(`${side}Atoms${group}`, `${side}Scales${group}`, version);
      commitShared();
      for (const side of ["left", "right"] as const)
        tcgen05Copy(this.#ref(`${side}Atoms${group}`), this.#ref(`${side}Tensor${group}`));
    },
    loop: ({ trips, isDynamic, body }) => {
      const count = isDynamic ? this.#scalar("none").add(trips) : trips;
      loop(count, (step) => {
        this.statements(body, step);
      });
    },
    when: ({ holds, body }, turn) => {
      when(this.#scalar("none").eq(holds ? 0 : 1), () => {
        this.statements(body, turn);
      });
    },
  };

  #store({ into: region, shape, negates }: StatementOf<"store">, turn: Turn): void {
    const window = this.#window(region, turn);
    const by = shape && { shape };
    const source = this.#ref(`z${region.group}_${region.sums}`);
    const value: Tile = negates
      ? window.load(by).neg()
      : source.at(all, slice(region.column, region.width)).load();
    window.store(value as never, by);
  }

  #multiply({ into: region, left, right, adds }: StatementOf<"multiply">, turn: Turn): void {
    const { lefts, rights, isScaled } = this.#groupAt(region.group);
    const a = this.#ref(`left${region.group}_${left}`);
    const b = this.#ref(`right${region.group}_${right}`);
    const flags = {
      always: () => undefined,
      never: () => false,
      later: () => turn?.gt(0) ?? false,
      flag: () => this.#scalar("flag").ne(0),
    };
    const flag = flags[adds]();
    const scales = isScaled && {
      scales: [
        this.#ref(`leftTensor${region.group}`),
        this.#ref(`rightTensor${region.group}`),
      ] as const,
    };
    tcgen05Mma(
      this.#window(region, turn),
      lefts[left]?.place === "across" ? a.transpose() : a,
      rights[right]?.along === true ? b.transpose() : b,
      { ...(flag !== undefined && { adds: flag }), ...scales },
    );
  }
}

export function tracedPlan(plan: Plan): Kernel {
  const { groups, outputs, warps, statements } = plan;
  const arrays = outputs.map(({ group, turns, width }, at) => {
    const { sum, rows } = groups[group] ?? { sum: i32, rows: 0 };
    return [`out${at}`, tensor(sum, [turns, rows, width])] as const;
  });
  const { kernel: traced } = kernel(
    {
      name: "tensor_memory",
      warps,
      inputs: {
        ...declared(groups, inputsOf),
        flag: scalar(i32),
        none: scalar(i32),
        start: scalar(i32),
      },
      inouts: Object.fromEntries(arrays),
      scratch: { ...declared(groups, scratchOf), done: barrier(), later: barrier() },
    } as never,
    (given: Given) => {
      const tracer = new Tracer(plan, given);
      tracer.begin();
      tracer.statements(statements);
    },
  );
  return traced;
}
