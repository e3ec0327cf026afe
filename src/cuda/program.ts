/** A kernel loaded on the GPU: the driver's handles, and what it takes of the hardware. */
import type { LaunchPlan } from "../ptx/executable.ts";
import type { Location } from "../support/location.ts";
import type { CudaContext } from "./context.ts";
import { answerText, misfit } from "./errors.ts";
import { allowances, functionAttributes } from "./function-attributes.ts";
import { loadModule } from "./module.ts";
import { resourceResults, success } from "./results.ts";

export interface Program {
  readonly plan: LaunchPlan;
  /** Where the kernel is declared. */
  readonly location: Location;
  readonly function: number;
  readonly registers: number;
  /** Bytes of each lane that lie in memory: spilled registers. */
  readonly localBytes: number;
  /** What the assembler said; undefined where it was not asked. */
  readonly log: string | undefined;
  unload(): void;
}

export function loadProgram(
  context: CudaContext,
  plan: LaunchPlan,
  location: Location,
  code: string | Uint8Array,
): Program {
  const { handle: module, log } = loadModule(context, { name: plan.name, location, code });
  const { driver } = context;
  const unload = (): void => {
    driver.calls.cuModuleUnload(module);
  };
  try {
    const handle = findFunction(context, plan.entry, module);
    const attribute = (name: keyof typeof functionAttributes): number =>
      context.number32(
        "cuFuncGetAttribute",
        `look at kernel ${plan.name}`,
        functionAttributes[name],
        handle,
      );
    const registers = attribute("registers");
    const localBytes = attribute("localBytes");
    const program = { plan, location, function: handle, registers, localBytes, log, unload };
    allow(context, program);
    return program;
  } catch (error) {
    unload();
    throw error;
  }
}

/** The function of a module that an entry's name stands for. */
export function findFunction(context: CudaContext, entry: string, module: number): number {
  const name = new TextEncoder().encode(`${entry}\0`);
  const memory = context.driver.allocateHost(name.byteLength);
  try {
    memory.bytes.set(name);
    return context.make(
      "cuModuleGetFunction",
      `find kernel ${entry} in its module`,
      module,
      memory.address,
    );
  } finally {
    context.driver.freeHost(memory);
  }
}

/** Asks for what a function does not have by default. */
function allow(context: CudaContext, program: Program): void {
  for (const [attribute, value] of allowances(program.plan)) {
    const { calls } = context.driver;
    const result = calls.cuFuncSetAttribute(program.function, attribute, value);
    if (result !== success) throw launchFailure(context, program, result, "cuFuncSetAttribute");
  }
}

/** The report of a kernel that the driver does not launch. */
export function launchFailure(
  context: CudaContext,
  program: Program,
  result: number,
  call: "cuFuncSetAttribute" | "cuLaunchKernelEx",
): Error {
  const { plan, location } = program;
  if (!resourceResults.has(result))
    return context.failure(result, call, `launch kernel ${plan.name}`);
  return misfit(plan.name, location, needsText(program), answerText(call, result));
}

function needsText({ plan, registers }: Program): string {
  const parts = [
    `${plan.threadsPerBlock} threads a block`,
    `${registers} registers a thread`,
    `${plan.sharedBytes} bytes of shared memory`,
    ...(plan.cluster > 1 ? [`clusters of ${plan.cluster} blocks`] : []),
  ];
  return parts.join(", ");
}
