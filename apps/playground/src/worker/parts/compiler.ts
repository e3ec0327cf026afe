/** Everything behind the simulator: the whole library with placement and PTX, the emulator, and views on what they made. */
export * as library from "../../../../../src/index.ts";
export * as testing from "../../../../../src/testing/index.ts";
export * as emulator from "../../../../../src/emulator/api/index.ts";
export * as files from "../../../../../src/files/index.ts";
export { EmulatorBackend } from "../../../../../src/runtime/emulator-backend.ts";
export { compiledAnswers } from "../answers/compiled.ts";
