// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Notes} from "./Notes.sol";
import {Owned} from "./Owned.sol";

/// @title VaultV2
/// @notice Ether vault with a note board; the owner can sweep it in one call.
contract VaultV2 is Notes, Owned {
    uint256 public deposits;

    event Swept(address indexed to, uint256 amount);

    function deposit() external payable {
        deposits += 1;
    }

    function pay(address payable to, uint256 amount) external onlyOwner {
        _pay(to, amount);
    }

    /// @notice Sends everything to an address.
    function sweep(address payable to) external onlyOwner {
        emit Swept(to, address(this).balance);
        _pay(to, address(this).balance);
    }

    function _pay(address payable to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
