// Compiles all pairs, carries each attack out against both twins, and prints one JSON line for each pair.
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile } from "./compile.mjs";
import { Reverted, makeWorld } from "./world.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const [folder, ...wanted] = process.argv.slice(2);
const shared = compile({ "stand_ins.sol": readFileSync(join(here, "stand_ins.sol"), "utf8") }).contracts;

/** The files of one twin: a single file, or a folder of files. */
function filesOf(pair, twin) {
  const place = join(folder, pair, twin);
  const names = statSync(place, { throwIfNoEntry: false }) ? readdirSync(place).sort() : null;
  if (names === null) return { [`${twin}.sol`]: readFileSync(`${place}.sol`, "utf8") };
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(place, name), "utf8")]));
}

/** What happened when one twin was used and attacked: `lost`, `held`, and what a refusal said. */
async function tryTwin(exploit, twin, target, own) {
  const world = await makeWorld(twin, target, own, shared);
  const state = await exploit.use(world);
  try {
    const lost = await exploit.attack(world, state ?? {});
    if (typeof lost !== "boolean") throw new Error(`attack() returned ${lost}, not whether somebody lost`);
    return { outcome: lost ? "lost" : "held", why: lost ? "" : "no loss" };
  } catch (error) {
    if (!(error instanceof Reverted)) throw error;
    return { outcome: "held", why: error.message };
  }
}

async function tryPair(pair) {
  const row = { pair, warnings: {} };
  try {
    const exploit = await import(`./exploits/${pair}.mjs`);
    const own = exploit.contracts ? compile({ [`${pair}.sol`]: HEAD + exploit.contracts }).contracts : new Map();
    for (const twin of ["vulnerable", "patched"]) {
      const { contracts, warnings } = compile(filesOf(pair, twin));
      row.warnings[twin] = warnings;
      row[twin] = await tryTwin(exploit, twin, contracts, own);
    }
  } catch (error) {
    row.error = `${error.stack ?? error}`;
  }
  return row;
}

const HEAD = "// SPDX-License-Identifier: Apache-2.0\npragma solidity ^0.8.20;\n";
const pairs = readdirSync(folder).filter((name) => name.startsWith("pair_")).sort();
for (const pair of pairs) {
  if (wanted.length === 0 || wanted.includes(pair)) console.log(JSON.stringify(await tryPair(pair)));
}
