// A small chain in memory: accounts, blocks, contracts that are called by their functions' names.
import { Common, Hardfork, Mainnet } from "@ethereumjs/common";
import { createEVM } from "@ethereumjs/evm";
import { Account, createAddressFromString, hexToBytes } from "@ethereumjs/util";
import { ContractFactory, Interface, MaxUint256, Wallet, getAddress, getCreateAddress, hexlify, id, parseEther } from "ethers";

const NAMES = ["owner", "alice", "bob", "carol", "mallory", "eve"];

/** A call that the contract refused, or that ran out of a block's gas. */
export class Reverted extends Error {}

export const ether = (amount) => parseEther(String(amount));
export const DAY = 86_400;
export const HOUR = 3_600;

/** Makes a world in which the contracts of the maps can be deployed; the first map that has a name wins. */
export async function makeWorld(twin, ...contractMaps) {
  const hashes = { async getBlock(number) { return { hash: () => hexToBytes(id(`block ${number}`)) }; } };
  hashes.putBlock = async () => {};
  hashes.shallowCopy = () => hashes;
  const common = new Common({ chain: Mainnet, hardfork: Hardfork.Cancun });
  const evm = await createEVM({ common, blockchain: hashes });
  const world = new World(twin, evm, contractMaps);
  for (const name of NAMES) {
    const wallet = new Wallet(id(name));
    world[name] = wallet.address;
    world.wallets.set(wallet.address, wallet);
    await evm.stateManager.putAccount(createAddressFromString(wallet.address), new Account(0n, ether(1_000_000)));
  }
  return world;
}

class World {
  constructor(twin, evm, contractMaps) {
    Object.assign(this, { twin, evm, contractMaps, wallets: new Map(), gasUsed: 0n, logs: [] });
    this.patched = twin === "patched";
    this.block = { number: 1_000n, timestamp: 1_760_000_000n, prevRandao: hexToBytes(id("prevRandao")) };
    this.blockGas = 30_000_000n; // Attacks that fill a block set a tenth of it, which makes them ten times as quick.
  }

  /** Deploys a contract and returns a handle with a method for each function. */
  async deploy(name, args = [], { from = this.owner, value = 0n } = {}) {
    const artifact = this.contractMaps.map((map) => map.get(name)).find(Boolean);
    if (!artifact) throw new Error(`there is no contract ${name}`);
    const factory = new ContractFactory(artifact.abi, artifact.bytecode);
    const transaction = await factory.getDeployTransaction(...args.map(plain));
    const result = await this.send(new Interface(artifact.abi), { from, value, data: transaction.data });
    return this.at(name, result.createdAddress.toString());
  }

  /** A handle on a contract that is already there, by the interface of the contract `name`. */
  at(name, address) {
    const artifact = this.contractMaps.map((map) => map.get(name)).find(Boolean);
    if (!artifact) throw new Error(`there is no contract ${name}`);
    return handle(this, new Interface(artifact.abi), getAddress(String(plain(address))));
  }

  /** Deploys a stand-in token with balances, `{address: amount}`. */
  async token(balances = {}, name = "Token") {
    const token = await this.deploy(name);
    for (const [holder, amount] of Object.entries(balances)) await token.mint(holder, amount);
    return token;
  }

  /** Lets a spender move all tokens of the accounts. */
  async approve(token, spender, ...accounts) {
    for (const from of accounts) await token.approve(spender, MaxUint256, { from });
  }

  /** Sends plain ether or raw data to an address. */
  async pay(to, value, { from = this.owner, data = "0x" } = {}) {
    return this.send(null, { from, to: String(plain(to)), value, data });
  }

  async send(abi, { from, to, value = 0n, data = "0x", gas = this.blockGas }) {
    const caller = createAddressFromString(String(plain(from)));
    const { evm, block } = this;
    const result = await evm.runCall({
      caller,
      origin: caller,
      to: to === undefined ? undefined : createAddressFromString(to),
      data: hexToBytes(data),
      value: BigInt(value),
      gasLimit: BigInt(gas),
      block: {
        header: {
          ...block,
          cliqueSigner: () => createAddressFromString(this.owner),
          coinbase: createAddressFromString(this.bob),
          difficulty: 0n,
          gasLimit: this.blockGas,
          baseFeePerGas: 0n,
          getBlobGasPrice: () => 1n,
        },
      },
    });
    evm.transientStorage.clear();
    await evm.journal.cleanup();
    for (const [address] of result.execResult.selfdestruct ?? []) {
      await evm.stateManager.deleteAccount(createAddressFromString(address));
    }
    this.gasUsed = result.execResult.executionGasUsed;
    this.logs = result.execResult.logs ?? [];
    const failure = result.execResult.exceptionError;
    if (failure) {
      const returned = hexlify(result.execResult.returnValue);
      let reason = null;
      try {
        const parsed = (abi ?? new Interface([])).parseError(returned);
        reason = parsed && `${parsed.name}(${parsed.args.join(", ")})`;
      } catch {
        reason = null; // Errors of another contract are shown as bytes.
      }
      throw new Reverted(`${failure.error}: ${reason ?? returned}`);
    }
    return result;
  }

  /** Lets time and blocks go by; twelve seconds a block. */
  warp(seconds, blocks = Math.max(1, Math.floor(Number(seconds) / 12))) {
    this.block.timestamp += BigInt(seconds);
    this.block.number += BigInt(blocks);
  }

  /** The balance in wei of an account or a contract. */
  async balance(who) {
    const account = await this.evm.stateManager.getAccount(createAddressFromString(String(plain(who))));
    return account?.balance ?? 0n;
  }

  /** What a storage slot of a contract holds, for secrets that were none. */
  async slot(who, key) {
    const bytes = await this.evm.stateManager.getStorage(
      createAddressFromString(String(plain(who))),
      hexToBytes(`0x${BigInt(key).toString(16).padStart(64, "0")}`),
    );
    return bytes.length ? BigInt(hexlify(bytes)) : 0n;
  }

  /** The address that an account's next contract will get. */
  async nextAddress(who) {
    const account = await this.evm.stateManager.getAccount(createAddressFromString(String(plain(who))));
    return getCreateAddress({ from: String(plain(who)), nonce: account?.nonce ?? 0n });
  }

  /** Signs a 32-byte digest as one of the named accounts; `{v, r, s}`. */
  sign(account, digest) {
    const { v, r, s } = this.wallets.get(account).signingKey.sign(digest);
    return { v, r, s, packed: `${r}${s.slice(2)}${v.toString(16)}` };
  }

  /** Whether a call is refused. Anything else than a refusal is an error of the exploit. */
  async refuses(call) {
    try {
      await call;
      return false;
    } catch (error) {
      if (error instanceof Reverted) return true;
      throw error;
    }
  }

  /** Holds ordinary use to what it should do, in both twins. */
  same(actual, expected, what) {
    if (actual !== expected) throw new Error(`${what}: ${actual}, not ${expected}`);
  }
}

function handle(world, abi, address) {
  return new Proxy(
    { address, abi },
    {
      get(target, name) {
        if (name in target) return target[name];
        if (typeof name !== "string" || name === "then") return undefined;
        return async (...given) => {
          const last = given.at(-1);
          const isOptions = last !== null && typeof last === "object" && !Array.isArray(last) && !last.address;
          const { from = world.owner, value = 0n, gas } = isOptions ? given.pop() : {};
          const fragment = abi.getFunction(name);
          if (!fragment) throw new Error(`the contract has no function ${name}`);
          const data = abi.encodeFunctionData(fragment, given.map(plain));
          const result = await world.send(abi, { from, to: address, value, data, gas });
          const values = abi.decodeFunctionResult(fragment, result.execResult.returnValue);
          return values.length === 1 ? values[0] : values;
        };
      },
    },
  );
}

/** A handle stands for its address, in lists too. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  return value?.address ?? value;
}
