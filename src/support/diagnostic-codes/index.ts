/**
 * The registry of diagnostic codes. The first digit is the area:
 * 0 number formats, host arrays and files of them, 1 kernel language, 2 tile IR, 3 simulator, 4 device and runtime,
 * 5 command line and test helpers, 6 layouts, 7 PTX, 8 emulator, 9 programs. A code keeps its meaning for good; retired
 * codes are not reused.
 *
 *   TW1004: { title, cause, example, remedy }      `docs/diagnostics.md` has a section for each
 */
import { arrayCodes } from "./arrays.ts";
import { benchCodes } from "./bench.ts";
import { deviceCodes } from "./device.ts";
import { cpuCodes } from "./cpu.ts";
import { driverCodes } from "./driver.ts";
import { emulatorCodes } from "./emulator.ts";
import { emulatorAsyncCodes } from "./emulator-async.ts";
import { emulatorTensorMemoryCodes } from "./emulator-tensor-memory.ts";
import { evaluateCodes } from "./evaluate.ts";
import { fileCodes } from "./files.ts";
import { formatCodes } from "./formats.ts";
import { graphCodes } from "./graph.ts";
import { graphDeviceCodes } from "./graph-devices.ts";
import { graphTextCodes } from "./graph-text.ts";
import { irCodes } from "./ir.ts";
import { kernelCodes } from "./kernels.ts";
import { languageCodes } from "./language.ts";
import { layoutCodes } from "./layout.ts";
import { performanceCodes } from "./performance.ts";
import { pipelineCodes } from "./pipelines.ts";
import { ptxCodes } from "./ptx.ts";
import { ptxTextCodes } from "./ptx-text.ts";
import { rankCodes } from "./ranks.ts";
import { simulatorCodes } from "./simulator.ts";
import { textCodes } from "./text.ts";
import { toolCodes } from "./tools.ts";
import { tuneCodes } from "./tune.ts";

export const codes = Object.freeze({
  ...formatCodes,
  ...fileCodes,
  ...languageCodes,
  ...pipelineCodes,
  ...irCodes,
  ...textCodes,
  ...simulatorCodes,
  ...deviceCodes,
  ...cpuCodes,
  ...driverCodes,
  ...toolCodes,
  ...layoutCodes,
  ...ptxCodes,
  ...performanceCodes,
  ...ptxTextCodes,
  ...emulatorCodes,
  ...emulatorAsyncCodes,
  ...emulatorTensorMemoryCodes,
  ...graphTextCodes,
  ...graphCodes,
  ...arrayCodes,
  ...kernelCodes,
  ...benchCodes,
  ...tuneCodes,
  ...evaluateCodes,
  ...graphDeviceCodes,
  ...rankCodes,
});
