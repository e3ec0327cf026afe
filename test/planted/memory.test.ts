import { memoryKernels } from "./memory.ts";
import { definePlantedTests } from "./suite.ts";

definePlantedTests(memoryKernels);
