// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Notes} from "./Notes.sol";
import {Owned} from "./Owned.sol";

/// @title VaultV1
/// @notice Ether vault with a note board.
contract VaultV1 is Owned, Notes {
    uint256 public deposits;

    function deposit() external payable {
        deposits += 1;
    }

    function pay(address payable to, uint256 amount) external onlyOwner {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
