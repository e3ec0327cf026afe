/**
 * What a worker may say. It has run a stranger's program, which may find the port that it speaks on, so that every message is
 * held against its type before the page believes it, and there are only so many:
 *
 *   { kind: "finished", report: { findings: 5 } }     no report: the run is cut off, and the page says why
 *   { kind: "progress" } 300,000 times                the port is closed after `mostMessages` of them
 *
 * A check is made for a type, and a field without one does not compile.
 */
import type {
  ArenaBuffer,
  ArrayComparison,
  ArraySummary,
  BankSummary,
  ConversionSummary,
  CostLine,
  CostReport,
  DeadlockGraph,
  ElementMap,
  Finding,
  FindingNote,
  FromWorker,
  GraphNode,
  GraphReport,
  HeatMap,
  KernelSummary,
  LaunchSummary,
  LayoutReport,
  Line,
  MemoryAccess,
  MemoryBuffer,
  MemoryReport,
  PlanReport,
  QuestionName,
  Questions,
  Roofline,
  RunReport,
  SharedSummary,
  SpeedNote,
  Stage,
  StageLine,
  TileSummary,
  TimelineReport,
  TimelineSpan,
  TimelineTrack,
  ValuesReport,
  WaitEdge,
  WaitNode,
} from "../protocol.ts";

/** Messages of one worker; the longest honest runs send hundreds. */
export const mostMessages = 20_000;

type Check<T> = (value: unknown) => value is T;

/** A check by a test that knows no types. */
const check = <T>(holds: (value: unknown) => boolean): Check<T> =>
  holds as (value: unknown) => value is T;

const longestText = 1_000_000;
const most = 1_000_000;

const text = check<string>((value) => typeof value === "string" && value.length <= longestText);
const number = check<number>((value) => typeof value === "number");
const flag = check<boolean>((value) => typeof value === "boolean");
const count = check<number>((value) => Number.isSafeInteger(value) && (value as number) >= 0);

const optional = <T>(inner: Check<T>): Check<T | undefined> =>
  check((value) => value === undefined || inner(value));

const list = <T>(inner: Check<T>): Check<readonly T[]> =>
  check((value) => Array.isArray(value) && value.length <= most && value.every(inner));

const pair = <A, B>(first: Check<A>, second: Check<B>): Check<readonly [A, B]> =>
  check(
    (value) => Array.isArray(value) && value.length === 2 && first(value[0]) && second(value[1]),
  );

const oneOf = <T extends string>(...names: readonly T[]): Check<T> =>
  check((value) => typeof value === "string" && names.includes(value as T));

const record = <T extends object>(fields: { readonly [K in keyof T]-?: Check<T[K]> }): Check<T> =>
  check((value) => {
    if (typeof value !== "object" || value === null) return false;
    const given = value as { readonly [name: string]: unknown };
    return Object.entries<(field: unknown) => boolean>(fields).every(([name, holds]) =>
      holds(given[name]),
    );
  });

/** One of several forms. */
const either = <T>(...forms: readonly ((value: unknown) => boolean)[]): Check<T> =>
  check((value) => forms.some((holds) => holds(value)));

const array = <T>(constructor: new () => T): Check<T> =>
  check((value) => value instanceof constructor);

const line: Check<Line> = optional(count);

const finding = record<Finding>({
  code: text,
  title: text,
  summary: text,
  line,
  expected: optional(text),
  found: optional(text),
  remedy: optional(text),
  notes: list(record<FindingNote>({ message: text, line })),
});

const waitEdge = record<WaitEdge>({
  waiter: count,
  barrier: text,
  arrival: record({ op: text, line }),
  thread: text,
  keptBy: optional(count),
});

const isDeadlock = record<DeadlockGraph>({
  waits: list(record<WaitNode>({ thread: text, place: text, op: text, line, awaited: text })),
  edges: list(waitEdge),
});

/** Edges name waits that there are. */
const deadlock = check<DeadlockGraph>(
  (value) =>
    isDeadlock(value) &&
    value.edges.every(
      ({ waiter, keptBy = 0 }) => waiter < value.waits.length && keptBy < value.waits.length,
    ),
);

const isHeat = record<HeatMap>({ rows: count, columns: count, cells: array(Float32Array) });
const heat = check<HeatMap>(
  (value) => isHeat(value) && value.rows * value.columns === value.cells.length,
);

const arraySummary = record<ArraySummary>({
  name: text,
  role: text,
  dtype: text,
  shape: list(count),
  least: number,
  greatest: number,
  mean: number,
  notANumber: count,
  heat,
  comparison: optional(
    record<ArrayComparison>({
      device: text,
      different: count,
      elements: count,
      first: check(
        optional(
          record<NonNullable<ArrayComparison["first"]>>({
            index: list(count),
            values: pair(text, text),
          }),
        ),
      ),
    }),
  ),
});

const launch = record<LaunchSummary>({
  kernel: text,
  device: text,
  dimensions: list(pair(text, number)),
  scalars: list(pair(text, text)),
  arrays: list(arraySummary),
  milliseconds: number,
});

const isReport = record<RunReport>({
  findings: list(finding),
  deadlock: optional(deadlock),
  launches: list(launch),
  kernels: list(record<KernelSummary>({ name: text, line, launch: optional(count) })),
  reference: optional(record({ elements: count, worst: number })),
  returned: optional(text),
  milliseconds: number,
});

/** Kernels name launches that there are. */
const report = check<RunReport>(
  (value) =>
    isReport(value) &&
    value.kernels.every(({ launch: at }) => at === undefined || at < value.launches.length),
);

const stageLines = list(
  record<StageLine>({ text, line, change: oneOf<StageLine["change"]>("same", "new") }),
);

const tile = record<TileSummary>({
  op: text,
  line,
  dtype: text,
  shape: list(count),
  layout: text,
  name: optional(text),
  registers: number,
});

const conversion = record<ConversionSummary>({
  op: text,
  line,
  shape: list(count),
  before: text,
  after: text,
  way: text,
  cost: number,
});

const mapSize = { rows: count, columns: count, title: text };
const isMap = either<ElementMap>(
  record<Extract<ElementMap, { kind: "registers" }>>({
    ...mapSize,
    kind: oneOf("registers"),
    lanes: array(Uint8Array),
    warps: array(Uint8Array),
    registers: array(Uint16Array),
    copies: count,
  }),
  record<Extract<ElementMap, { kind: "shared" }>>({
    ...mapSize,
    kind: oneOf("shared"),
    offsets: array(Uint32Array),
    bits: count,
  }),
);
const elements = check<ElementMap>(
  (value) =>
    isMap(value) &&
    value.rows * value.columns ===
      (value.kind === "shared" ? value.offsets.length : value.registers.length),
);

const span = record<TimelineSpan>({
  track: count,
  kind: oneOf<TimelineSpan["kind"]>("runs", "waits", "beside"),
  op: text,
  line,
  iteration: text,
  from: number,
  to: number,
});
const isTimeline = record<TimelineReport>({
  tracks: list(record<TimelineTrack>({ block: text, name: text, beside: flag })),
  spans: list(span),
  steps: number,
  complete: flag,
});
const timeline = check<TimelineReport>(
  (value) => isTimeline(value) && value.spans.every(({ track }) => track < value.tracks.length),
);

const access = record<MemoryAccess>({
  buffer: count,
  mode: oneOf<MemoryAccess["mode"]>("read", "write"),
  op: text,
  line,
  thread: text,
  from: number,
  to: number,
});
const isMemory = record<MemoryReport>({
  block: text,
  buffers: list(record<MemoryBuffer>({ name: text, offset: number, bytes: number, holds: text })),
  accesses: list(access),
  bytes: number,
  limit: number,
  steps: number,
});
const memory = check<MemoryReport>(
  (value) => isMemory(value) && value.accesses.every(({ buffer }) => buffer < value.buffers.length),
);

const costLine = record<CostLine>({
  line,
  instructions: number,
  products: number,
  accesses: text,
  conversions: number,
  lostToBanks: number,
});

const cost = record<CostReport>({
  flops: number,
  transcendentals: number,
  globalRead: number,
  globalWritten: number,
  sharedRead: number,
  sharedWritten: number,
  unknownLoops: list(line),
  threads: number,
  sharedBytes: number,
  occupancy: record({ blocks: number, limit: text }),
  lines: list(costLine),
  roofline: record<Roofline>({
    board: text,
    peak: number,
    peakOf: text,
    bandwidth: number,
    intensity: number,
    least: number,
    bound: oneOf<Roofline["bound"]>("memory", "arithmetic"),
  }),
});

const arenaBuffer = record<ArenaBuffer>({
  type: text,
  offset: number,
  bytes: number,
  from: number,
  to: number,
});
const plan = either<PlanReport>(
  record<Extract<PlanReport, { kind: "planned" }>>({
    kind: oneOf("planned"),
    lines: list(text),
    launches: count,
    steps: count,
    arenaBytes: number,
    buffers: list(arenaBuffer),
  }),
  record<Extract<PlanReport, { kind: "refused" }>>({ kind: oneOf("refused"), finding }),
);

const graphNode = record<GraphNode>({
  id: count,
  kind: text,
  type: text,
  detail: text,
  line,
  layer: count,
});

const answers: { readonly [N in QuestionName]: Check<Questions[N]["gives"]> } = {
  stages: list(record<Stage>({ name: text, lines: stageLines, removed: count })),
  notes: list(
    record<SpeedNote>({
      code: text,
      message: text,
      because: text,
      remedy: text,
      line,
      kernel: text,
    }),
  ),
  layouts: record<LayoutReport>({
    tiles: list(tile),
    conversions: list(conversion),
    shared: list(
      record<SharedSummary>({ name: text, line, dtype: text, shape: list(count), layout: text }),
    ),
    banks: list(record<BankSummary>({ op: text, line, wavefronts: number, ideal: number })),
  }),
  elements,
  timeline,
  trace: check((value) => typeof value === "string"),
  memory,
  cost,
  values: record<ValuesReport>({
    rows: count,
    columns: count,
    row: count,
    column: count,
    values: list(list(text)),
  }),
  graph: record<GraphReport>({
    name: text,
    nodes: list(graphNode),
    edges: list(pair(number, number)),
    simplified: stageLines,
    plan,
  }),
};

const messages: { readonly [K in FromWorker["kind"]]: (value: unknown) => boolean } = {
  need: record<{ readonly part: string }>({ part: text }),
  printed: record<{ readonly text: string }>({ text }),
  refused: record<{ readonly what: string }>({ what: text }),
  progress: record<{ readonly message: string }>({ message: text }),
  finished: record<{ readonly report: RunReport }>({ report }),
  // The answer itself is held against its question.
  answered: record<{ readonly id: number }>({ id: count }),
  failed: record<{ readonly id: number; readonly finding: Finding }>({ id: count, finding }),
};

/** The message that a worker sent; undefined where it is none. */
export function heardMessage(value: unknown): FromWorker | undefined {
  const { kind } = (typeof value === "object" && value !== null ? value : {}) as {
    readonly kind?: unknown;
  };
  if (typeof kind !== "string" || !Object.hasOwn(messages, kind)) return undefined;
  return messages[kind as FromWorker["kind"]](value) ? (value as FromWorker) : undefined;
}

/** Whether a value is an answer to a question. */
export function isAnswer<N extends QuestionName>(
  name: N,
  value: unknown,
): value is Questions[N]["gives"] {
  return answers[name](value);
}
