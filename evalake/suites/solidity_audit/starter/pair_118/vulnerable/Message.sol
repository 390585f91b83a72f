// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @notice What is sent across, by number.
struct Message {
    uint256 number;
    address sender;
    address target;
    uint256 value;
    bytes data;
}

/// @notice What a message is known by.
function messageId(Message memory message) pure returns (bytes32) {
    return keccak256(abi.encode(message));
}
