// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {CloneWallet} from "./CloneWallet.sol";
import {Clones} from "./Clones.sol";

/// @title WalletMaker
/// @notice Makes wallets for owners and keeps a directory of them.
contract WalletMaker {
    address public immutable logic;
    mapping(address => address[]) private walletsOf;

    event Created(address indexed owner, address wallet);

    constructor() {
        CloneWallet original = new CloneWallet();
        original.initialize(address(this));
        logic = address(original);
    }

    /// @notice Makes a wallet for an owner.
    function create(address owner, bytes32 salt) external returns (address wallet) {
        require(owner != address(0), "zero owner");
        wallet = Clones.clone(logic, keccak256(abi.encode(owner, salt)));
        walletsOf[owner].push(wallet);
        CloneWallet(payable(wallet)).initialize(owner);
        emit Created(owner, wallet);
    }

    function walletAt(address owner, uint256 position) external view returns (address) {
        return walletsOf[owner][position];
    }
}
