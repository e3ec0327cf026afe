/**
 * Loops and branches that the GPU decides itself: conditional nodes of CUDA graphs, whose graphs run while their condition
 * holds, or once. A kernel of one lane looks at the predicate or the index in memory, and sets a node's condition through a function
 * of CUDA's device runtime, which the driver resolves when it loads the kernel:
 *
 *   while    condition ▶ set ▶ ⟳ [ body ▶ condition ▶ set ]
 *   branch   set 0 ▶ set 1 ▶ … ▶ [ branch 0 ] ▶ [ branch 1 ] …       of which one runs
 *
 * All nodes of a branch are set before the first of them, since a branch may write where the index lay.
 */
import type { Repeatable } from "../device/backend.ts";
import { worksOf } from "../device/control-flow.ts";
import type { Control } from "../device/control-flow.ts";
import { unknownLocation } from "../support/location.ts";
import type { BoundHost, CudaPart } from "./bound-launch.ts";
import type { CudaContext } from "./context.ts";
import { dataView, readAddress, writeAddress } from "./driver.ts";
import { pointersOffset, writeConfiguration } from "./launch-block.ts";
import { loadModule } from "./module.ts";
import { findFunction } from "./program.ts";
import { success } from "./results.ts";
import type { MemoryRecord, MemoryUses } from "./streams.ts";

/** Drivers of CUDA 12.3 and later have conditional nodes. */
const firstDriver = 12030;
const entry = "set_condition";

/**
 * Sets a node's condition to whether the index in memory is the one that is wanted. A bool is the index 0 where it holds,
 * and an index out of range the last one.
 */
const ptx = `.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 node, .param .b32 value);
.visible .entry ${entry}(.param .u64 node, .param .u64 place, .param .u32 isBool, .param .u32 wanted, .param .u32 last)
{
  .reg .b64 %node, %place;
  .reg .b32 %index, %isBool, %wanted, %last, %value;
  .reg .pred %p, %q;
  ld.param.u64 %node, [node];
  ld.param.u64 %place, [place];
  ld.param.u32 %isBool, [isBool];
  ld.param.u32 %wanted, [wanted];
  ld.param.u32 %last, [last];
  cvta.to.global.u64 %place, %place;
  setp.ne.u32 %p, %isBool, 0;
  @%p bra BOOL;
  ld.global.u32 %index, [%place];
  bra CLAMP;
BOOL:
  ld.global.u8 %index, [%place];
  setp.eq.u32 %q, %index, 0;
  selp.u32 %index, 1, 0, %q;
CLAMP:
  min.u32 %index, %index, %last;
  setp.eq.u32 %q, %index, %wanted;
  selp.u32 %value, 1, 0, %q;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %node;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}
`;

/** The kernel that sets conditions, on a context. */
export class ConditionalNodes {
  readonly #context: CudaContext;
  readonly #module: number;
  readonly #function: number;

  private constructor(context: CudaContext, module: number, found: number) {
    this.#context = context;
    this.#module = module;
    this.#function = found;
  }

  /** Undefined where the driver has no conditional nodes, or does not resolve what sets them. */
  static load(context: CudaContext): ConditionalNodes | undefined {
    if (context.gpu.driverVersion < firstDriver) return undefined;
    try {
      const image = { name: entry, location: unknownLocation, code: ptx };
      const { handle } = loadModule(context, image);
      return new ConditionalNodes(context, handle, findFunction(context, entry, handle));
    } catch (error) {
      if (context.loss !== undefined) throw error;
      return undefined;
    }
  }

  /** Puts setting a node into what is recorded from a stream. */
  set(
    stream: number,
    node: bigint,
    { address, isBool }: Selector,
    wanted: number,
    last: number,
  ): void {
    const { driver } = this.#context;
    const values = pointersOffset + 8 * 5;
    const memory = driver.allocateHost(values + 8 * 5);
    try {
      const view = dataView(memory);
      const form = { blocks: [1, 1, 1], threads: [1, 1, 1], sharedBytes: 0, cluster: 1 } as const;
      writeConfiguration(view, memory.address, form);
      writeAddress(view, 32, stream);
      [node, BigInt(address), BigInt(isBool), BigInt(wanted), BigInt(last)].forEach((value, at) => {
        writeAddress(view, pointersOffset + 8 * at, memory.address + values + 8 * at);
        view.setBigUint64(values + 8 * at, value, true);
      });
      const result = driver.calls.cuLaunchKernelEx(
        memory.address,
        this.#function,
        memory.address + pointersOffset,
        0,
      );
      this.#context.check(result, "cuLaunchKernelEx", "record a condition");
    } finally {
      driver.freeHost(memory);
    }
  }

  dispose(): void {
    this.#context.driver.calls.cuModuleUnload(this.#module);
  }
}

/** What a condition looks at. */
interface Selector {
  readonly address: number;
  /** One byte, of which true is the index 0; else an i32. */
  readonly isBool: boolean;
}

/** Numbers of the driver. */
const conditionalNode = 13;
const nodeKinds = { branch: 0, while: 1 } as const;
const setDependencies = 1;
const captureThreadLocal = 1;
const streamNonBlocking = 1;
const parameterBytes = 256;

/** Memory that a condition looks at. */
interface ConditionMemory {
  readonly address: number;
  readonly record: MemoryRecord;
}

/** A loop or a branch as a part of recordings. */
export class CudaControl implements Repeatable, CudaPart {
  readonly kernel: string;
  readonly uses: MemoryUses;
  readonly #host: BoundHost;
  readonly #conditionalNodes: ConditionalNodes;
  readonly #control: Control<CudaPart, ConditionMemory>;
  readonly #selector: Selector;

  constructor(
    host: BoundHost,
    conditionalNodes: ConditionalNodes,
    control: Control<CudaPart, ConditionMemory>,
  ) {
    const { address, record } = control.selector;
    this.kernel = control.kind;
    this.#host = host;
    this.#conditionalNodes = conditionalNodes;
    this.#control = control;
    this.#selector = { address, isBool: control.isBool };
    const all = this.#parts.map(({ uses }) => uses);
    this.uses = {
      reads: [record, ...all.flatMap(({ reads = [] }) => reads)],
      writes: all.flatMap(({ writes = [] }) => writes),
    };
  }

  get #parts(): readonly CudaPart[] {
    return worksOf(this.#control);
  }

  launch(): void {
    throw new Error("a loop or a branch is launched as a part of a recording");
  }

  mark(): void {
    for (const part of this.#parts) part.mark();
  }

  dispose(): void {
    // Its parts are whoever's that bound them; it holds nothing itself.
  }

  put(stream: number): void {
    const control = this.#control;
    if (control.kind === "while") this.#loop(stream, control.condition, control.body);
    else this.#branch(stream, control.branches);
  }

  #loop(stream: number, condition: readonly CudaPart[], body: readonly CudaPart[]): void {
    const node = this.#handle(stream);
    const ask = (on: number): void => {
      for (const part of condition) part.put(on);
      this.#conditionalNodes.set(on, node, this.#selector, 0, 1);
    };
    ask(stream);
    this.#node(stream, node, "while", (on) => {
      for (const part of body) part.put(on);
      ask(on);
    });
  }

  #branch(stream: number, branches: readonly (readonly CudaPart[])[]): void {
    const nodes = branches.map(() => this.#handle(stream));
    nodes.forEach((node, wanted) => {
      this.#conditionalNodes.set(stream, node, this.#selector, wanted, branches.length - 1);
    });
    branches.forEach((parts, at) => {
      this.#node(stream, nodes[at] as bigint, "branch", (on) => {
        for (const part of parts) part.put(on);
      });
    });
  }

  /** The graph that is recorded from a stream, and what its next node depends on. */
  #captured(stream: number): { graph: number; dependencies: number; count: number } {
    const { context } = this.#host;
    const memory = context.driver.allocateHost(40);
    try {
      const at = [0, 8, 16, 24, 32].map((offset) => memory.address + offset);
      const [status = 0, identity = 0, graph = 0, dependencies = 0, count = 0] = at;
      const call = "cuStreamGetCaptureInfo";
      const result = context.driver.calls[call](
        stream,
        status,
        identity,
        graph,
        dependencies,
        count,
      );
      context.check(result, call, "record a condition");
      const view = dataView(memory);
      return {
        graph: readAddress(view, 16),
        dependencies: readAddress(view, 24),
        count: readAddress(view, 32),
      };
    } finally {
      context.driver.freeHost(memory);
    }
  }

  /** A condition of the graph that is being recorded; it has no value until it is set. */
  #handle(stream: number): bigint {
    const { context } = this.#host;
    const { graph } = this.#captured(stream);
    const memory = context.driver.allocateHost(8);
    try {
      const call = "cuGraphConditionalHandleCreate";
      const result = context.driver.calls[call](memory.address, graph, context.handle, 0, 0);
      context.check(result, call, "make a condition");
      return dataView(memory).getBigUint64(0, true);
    } finally {
      context.driver.freeHost(memory);
    }
  }

  /** Adds a node with what `record` puts on a stream as its graph; what is recorded next comes after it. */
  #node(
    stream: number,
    condition: bigint,
    kind: keyof typeof nodeKinds,
    record: (stream: number) => void,
  ): void {
    const { context } = this.#host;
    const { driver } = context;
    const { graph, dependencies, count } = this.#captured(stream);
    const memory = driver.allocateHost(parameterBytes + 8);
    try {
      const view = dataView(memory);
      view.setUint32(0, conditionalNode, true);
      view.setBigUint64(16, condition, true);
      view.setUint32(24, nodeKinds[kind], true);
      view.setUint32(28, 1, true);
      writeAddress(view, 40, context.handle);
      const node = memory.address + parameterBytes;
      const added = driver.calls.cuGraphAddNode(node, graph, dependencies, count, memory.address);
      context.check(added, "cuGraphAddNode", "record a condition");
      const call = "cuStreamUpdateCaptureDependencies";
      const updated = driver.calls[call](stream, node, 1, setDependencies);
      context.check(updated, call, "record a condition");
      const graphs = driver.viewHost(readAddress(view, 32), 8);
      const body = readAddress(new DataView(graphs.buffer, graphs.byteOffset, 8), 0);
      recordInto(context, body, record);
    } finally {
      driver.freeHost(memory);
    }
  }
}

/** Records into a graph that there is, from a stream of its own. */
function recordInto(context: CudaContext, graph: number, record: (stream: number) => void): void {
  const { calls } = context.driver;
  const stream = context.make("cuStreamCreate", "make a stream", streamNonBlocking);
  const memory = context.driver.allocateHost(8);
  try {
    const call = "cuStreamBeginCaptureToGraph";
    context.check(calls[call](stream, graph, 0, 0, 0, captureThreadLocal), call, "record launches");
    let failure: { readonly error: unknown } | undefined;
    try {
      record(stream);
    } catch (error) {
      failure = { error };
    }
    const ended = calls.cuStreamEndCapture(stream, memory.address);
    if (failure !== undefined) throw failure.error;
    if (ended !== success) context.check(ended, "cuStreamEndCapture", "record launches");
  } finally {
    context.driver.freeHost(memory);
    calls.cuStreamDestroy(stream);
  }
}
