// Compiles every pair and every exploit's own contracts, with the npm builds of solc, in one process.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const compilers = new Map();

function compilerFor(text) {
  const name = /pragma solidity \^0\.7/.test(text) ? "solc-0.7" : "solc";
  if (!compilers.has(name)) compilers.set(name, require(name));
  return compilers.get(name);
}

/**
 * Compiles files that belong together.
 *
 * @param {Record<string, string>} files Texts by file name.
 * @returns {{contracts: Map<string, {abi: object[], bytecode: string, slots: object}>, warnings: string[]}}
 */
export function compile(files) {
  const compiler = compilerFor(Object.values(files)[0]);
  const output = JSON.parse(
    compiler.compile(
      JSON.stringify({
        language: "Solidity",
        sources: Object.fromEntries(Object.entries(files).map(([name, content]) => [name, { content }])),
        settings: { outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } } },
      }),
    ),
  );
  const messages = output.errors ?? [];
  const errors = messages.filter((message) => message.severity === "error");
  if (errors.length) throw new Error(errors.map((error) => error.formattedMessage).join("\n"));
  const contracts = new Map();
  for (const units of Object.values(output.contracts)) {
    for (const [name, unit] of Object.entries(units)) {
      if (unit.evm.bytecode.object) contracts.set(name, { abi: unit.abi, bytecode: `0x${unit.evm.bytecode.object}` });
    }
  }
  return { contracts, warnings: messages.map((message) => message.formattedMessage) };
}
