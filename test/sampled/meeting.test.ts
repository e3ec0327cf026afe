/** Where lanes, warps, blocks and copies must meet: all cases, and many of them under another schedule. */
import { meetingCases } from "../matrix/meeting.ts";
import { turnCases } from "../matrix/turns.ts";
import { sampleOf } from "../support/sample.ts";
import { sample } from "./sample.ts";

const cases = [...meetingCases(), ...turnCases()];
const names = cases.map(({ name }) => name);

sample("first schedule", cases, names);
sample("second schedule", cases, sampleOf(names, 3), { seed: 3 });
