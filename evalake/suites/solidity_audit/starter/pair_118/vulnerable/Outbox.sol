// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Message, messageId} from "./Message.sol";

/// @title Outbox
/// @notice Numbers messages that leave this side; carriers take them to the other side.
contract Outbox {
    uint256 public constant MOST_DATA = 4_000;

    uint256 public nextNumber;
    mapping(uint256 => bytes32) public idOf;

    event Sent(uint256 indexed number, address indexed sender, address indexed target, uint256 value, bytes data);

    /// @notice Sends a message; its ether is paid on the other side.
    function send(address target, bytes calldata data) external payable returns (uint256 number) {
        require(data.length <= MOST_DATA, "too long");
        number = nextNumber++;
        idOf[number] = messageId(Message(number, msg.sender, target, msg.value, data));
        emit Sent(number, msg.sender, target, msg.value, data);
    }
}
