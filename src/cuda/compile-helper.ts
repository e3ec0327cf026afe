/** A helper process of `background-compile.ts`: compiles the kernels that it is sent, for the GPU of this machine. */
import process from "node:process";
import { kernelText } from "../device/compilation.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { openGpu } from "./open.ts";

const backend = await openGpu();

process.on("message", (text) => {
  try {
    for (const kernel of parseModule(String(text)).kernels)
      backend.compile(kernel, kernelText(kernel, backend.sourceLines));
    backend.keepCompiled();
    process.send?.("compiled");
  } catch {
    process.send?.("failed");
  }
});
process.on("disconnect", () => {
  backend.dispose();
});
process.send?.("ready");
