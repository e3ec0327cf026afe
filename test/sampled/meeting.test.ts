/** Where lanes, warps, blocks and copies must meet: all cases, under two schedules. */
import { meetingCases } from "../matrix/meeting.ts";
import { turnCases } from "../matrix/turns.ts";
import { sample } from "./sample.ts";

const cases = [...meetingCases(), ...turnCases()];
const names = cases.map(({ name }) => name);

sample("first schedule", cases, names);
sample("second schedule", cases, names, { seed: 3 });
