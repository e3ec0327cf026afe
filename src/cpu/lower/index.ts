/**
 * Lowers a kernel, as the simulator runs it, to a module of WebAssembly:
 *
 *   run(arguments, begin, end, scratch)    blocks of the grid, one after the other
 *     block(…, coordinates)                its program threads, in turns where there are several
 *       thread_0(…)                        the kernel's body
 *         tile, reduce, store …            a function for each large loop, which engines optimise on its own
 */
import type { Kernel } from "../../ir/node.ts";
import type { CpuFeatures, CpuKernel } from "../compiled-kernel.ts";
import { maximumPages, stopped } from "../compiled-kernel.ts";
import { call, i32, load, ModuleBuilder, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import { emitModule } from "../loops/emit.ts";
import type { Callee, Expression, LoopModule } from "../loops/ir.ts";
import { StateFlow, StraightFlow, threadStatus } from "./flow.ts";
import { Lowering } from "./lowering.ts";
import { wholeRef } from "./memory-rules.ts";
import { noteDefinitions, RegionLowering } from "./regions.ts";
import { loweringRules } from "./rules.ts";
import { faultOffset } from "./scratch.ts";

/** A kernel's loops beside what a launch must know. */
export interface LoweredKernel {
  readonly loops: LoopModule;
  readonly kernel: Omit<CpuKernel, "bytes">;
}

/** The kernel, simplified, as loops. */
export function lowerToLoops(kernel: Kernel, features: CpuFeatures): LoweredKernel {
  noteDefinitions(kernel.body);
  const module = new ModuleBuilder({
    memory: { minimum: 1, maximum: maximumPages, shared: true },
  });
  const lowering = new Lowering(kernel, module, features);
  const threads = kernel.threads.map((_, thread) => threadFunction(lowering, thread));
  const block = blockFunction(lowering, threads);
  runFunction(lowering, block);
  const { fields, scratch, order: blocks, faults, prints, hostCalls } = lowering;
  return {
    loops: module.finish(),
    kernel: {
      name: kernel.name,
      relaxed: features.relaxed,
      grid: kernel.grid.map(({ name, extent }) => ({ name, extent })),
      argumentBytes: lowering.argumentBytes,
      fields,
      scratchBytes: scratch.bytes,
      blocks,
      faults,
      prints,
      hostCalls,
    },
  };
}

/** The kernel, simplified, as a module. */
export function lowerKernel(kernel: Kernel, features: CpuFeatures): CpuKernel {
  const { loops, kernel: launch } = lowerToLoops(kernel, features);
  return { ...launch, bytes: emitModule(loops) };
}

/** The body as one program thread runs it. */
function threadFunction(lowering: Lowering, thread: number): Callee {
  const { kernel, module } = lowering;
  lowering.beginFunction();
  lowering.thread = thread;
  const several = kernel.threads.length > 1;
  const states = several ? new StateFlow(lowering) : undefined;
  lowering.flow = states ?? new StraightFlow(lowering);
  bindParameters(lowering);
  new RegionLowering(lowering, loweringRules).lower(kernel.body, () => {});
  if (states === undefined) lowering.b.return(i32.of(threadStatus.ended));
  else {
    states.finish();
    lowering.scratch.seal();
  }
  return module.adopt(
    `thread_${thread}`,
    lowering.parameters,
    ["i32"],
    [...lowering.head.statements, ...lowering.b.statements],
  );
}

function bindParameters(lowering: Lowering): void {
  const { head } = lowering;
  for (const { name, value, strides } of lowering.kernel.parameters) {
    const { type } = value;
    if (type.kind === "scalar") {
      const scalar = lowering.scalarArgument(name, type.dtype);
      lowering.hold(value, { kind: "scalar", dtype: type.dtype, value: scalar });
    } else if (type.kind === "ref") {
      const array = {
        root: value,
        name,
        dtype: type.dtype,
        base: lowering.arrayAddress(name),
        shared: false,
      };
      const sizes = type.shape.map((size) => lowering.size(size));
      const own = strides?.map((stride) => lowering.size(stride));
      lowering.hold(value, wholeRef(head, array, sizes, own));
    }
  }
}

/** All threads of one block: in turns, until all have ended; where none goes on any more they never will. */
function blockFunction(lowering: Lowering, threads: readonly Callee[]): Callee {
  const { kernel, module } = lowering;
  lowering.beginFunction();
  const { b } = lowering;
  const scratch = lowering.scratchAddress;
  b.store("i32.store", scratch, i32.of(0), faultOffset);
  for (const { offset, bytes } of lowering.zeroedMemory)
    b.run(operation("memory.fill", i32.add(scratch, i32.of(offset)), i32.of(0), i32.of(bytes)));
  const operands = lowering.parameters.map(read);
  const [only] = threads;
  if (threads.length === 1 && only !== undefined) b.return(call(only, ...operands));
  else {
    const fault = lowering.fault(
      "deadlock",
      "program threads that wait for one another",
      kernel.location,
    );
    takeTurns(lowering, b, threads, operands, fault);
  }
  return module.adopt(
    "block",
    lowering.parameters,
    ["i32"],
    [...lowering.head.statements, ...b.statements],
  );
}

function takeTurns(
  lowering: Lowering,
  b: FunctionBuilder,
  threads: readonly Callee[],
  operands: readonly Expression[],
  deadlock: number,
): void {
  const status = threads.map(() => b.variable(i32.of(threadStatus.moved), "status"));
  const goesOn = b.local("i32", "on");
  const running = b.local("i32", "running");
  b.loop((again) => {
    b.set(goesOn, i32.of(0));
    b.set(running, i32.of(0));
    threads.forEach((thread, index) => {
      const own = status[index];
      if (own === undefined) return;
      b.if(read(own), () => {
        b.set(own, call(thread, ...operands));
        b.if(operation("i32.gt_s", read(own), i32.of(0)), () => b.return(read(own)));
        b.if(read(own), () => b.set(running, i32.of(1)));
        b.if(operation("i32.ne", read(own), i32.of(threadStatus.waits)), () =>
          b.set(goesOn, i32.of(1)),
        );
      });
    });
    b.if(operation("i32.eqz", read(running)), () => b.return(i32.of(0)));
    b.if(operation("i32.eqz", read(goesOn)), () => b.return(i32.of(deadlock)));
    // Threads that poll may do so for ever.
    b.if(load("i32.load", lowering.stopFlag()), () => b.return(i32.of(stopped)));
    b.branch(again);
  });
  b.unreachable();
}

/** A range of blocks, each at its coordinates. */
function runFunction(lowering: Lowering, block: Callee): void {
  const { kernel, module } = lowering;
  lowering.beginFunction();
  const { b } = lowering;
  const [begin, end] = [b.local("i32", "begin"), b.local("i32", "end")];
  const number = b.variable(read(begin), "block");
  const extents = kernel.grid.map(({ extent }) => {
    const size = lowering.size(extent);
    return typeof size === "number" ? i32.of(size) : size;
  });
  const flag = lowering.stopFlag();
  b.whileLoop(
    () => operation("i32.lt_u", read(number), read(end)),
    () => {
      b.if(load("i32.load", flag), () => b.return(i32.of(stopped)));
      let rest: Expression = read(number);
      const coordinates = extents.toReversed().map((extent) => {
        const own = b.keep(operation("i32.rem_u", rest, extent));
        rest = b.keep(operation("i32.div_u", rest, extent));
        return own;
      });
      const status = b.keep(
        call(
          block,
          read(lowering.argumentBlock),
          lowering.scratchAddress,
          ...coordinates.toReversed(),
          read(number),
        ),
      );
      b.if(status, () => {
        b.store("i32.store", lowering.scratchAddress, read(number));
        b.return(status);
      });
      b.set(number, i32.add(read(number), i32.of(1)));
    },
  );
  b.return(i32.of(0));
  module.adopt(
    "run",
    [lowering.argumentBlock, begin, end, lowering.scratchBase],
    ["i32"],
    [...lowering.head.statements, ...b.statements],
    { exported: true },
  );
}
