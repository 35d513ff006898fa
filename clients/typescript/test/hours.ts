// The cases of the dashboard and of the WordPress plugin: every text has the same periods, or the same problem.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type Day, hours, HoursRejected, hoursText, longHours, specialHours } from "profilesvc-client";

interface Case {
  day: Day;
  text: string;
  problem?: string;
  periods?: object[];
  shown?: string;
  long?: string;
}
const cases = JSON.parse(await readFile(process.env["CASES"] ?? "", "utf8")) as { week: Case[]; dates: Case[] };
assert.ok(cases.week.length > 60 && cases.dates.length > 20);

for (const { day, text, problem, periods, shown, long = "" } of cases.week) {
  if (problem !== undefined) {
    assert.throws(() => hours(day, text), new HoursRejected(problem), text);
    continue;
  }
  const found = hours(day, text);
  assert.deepEqual(found, periods, text);
  assert.equal(hoursText(day, found), shown, text);
  assert.equal(found.map(longHours).filter(Boolean).join(" "), long, text);
}
for (const { text, problem, periods, shown = "", long = "" } of cases.dates) {
  if (problem !== undefined) {
    assert.throws(() => specialHours(text), new HoursRejected(problem), text);
    continue;
  }
  const found = specialHours(text);
  assert.deepEqual(found, periods, text);
  assert.deepEqual(specialHours(shown), periods, text);
  assert.equal(found.map(longHours).filter(Boolean).join(" "), long, text);
}
assert.deepEqual(hours("MONDAY", "9-17").concat(hours("SUNDAY", "17-1")).map(({ closeDay }) => closeDay), ["MONDAY", "MONDAY"]);
