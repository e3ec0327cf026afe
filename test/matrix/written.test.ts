import { writtenCases } from "./written.ts";
import { emulateCases } from "./emulated.ts";

emulateCases(writtenCases());
