// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IToken} from "./Interfaces.sol";

/// @title Strategy
/// @notice Works with tokens of one vault and returns them on demand.
contract Strategy {
    IToken public immutable token;
    address public immutable vault;
    bool public retired;

    constructor(IToken token_, address vault_) {
        token = token_;
        vault = vault_;
    }

    modifier onlyVault() {
        require(msg.sender == vault, "not vault");
        _;
    }

    /// @notice Returns tokens to the vault, as many as there are.
    function giveBack(uint256 amount) external onlyVault returns (uint256 given) {
        uint256 here = token.balanceOf(address(this));
        given = amount > here ? here : amount;
        require(token.transfer(vault, given), "transfer failed");
    }

    /// @notice Hands everything to a successor.
    function handOver(address successor) external onlyVault returns (uint256 moved) {
        retired = true;
        moved = token.balanceOf(address(this));
        require(token.transfer(successor, moved), "transfer failed");
    }
}
