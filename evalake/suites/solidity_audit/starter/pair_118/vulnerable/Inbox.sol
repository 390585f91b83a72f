// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Message, messageId} from "./Message.sol";
import {Outbox} from "./Outbox.sol";

/// @title Inbox
/// @notice Delivers messages of the outbox in their order, out of the ether that carriers have put here.
contract Inbox {
    uint256 public constant CALL_GAS = 200_000;

    Outbox public immutable outbox;
    uint256 public nextNumber;
    mapping(uint256 => bytes32) public heldBack;

    event Delivered(uint256 indexed number);
    event HeldBack(uint256 indexed number);

    constructor(Outbox outbox_) payable {
        outbox = outbox_;
    }

    receive() external payable {}

    /// @notice Delivers the next message.
    function deliver(Message calldata message) external {
        require(message.number == nextNumber, "not the next");
        bytes32 id = messageId(message);
        require(id == outbox.idOf(message.number), "unknown message");
        nextNumber += 1;
        (bool ok, ) = message.target.call{value: message.value, gas: CALL_GAS}(message.data);
        require(ok, "call failed");
        emit Delivered(message.number);
    }

    /// @notice Tries a message again that was held back.
    function retry(Message calldata message) external {
        bytes32 id = messageId(message);
        require(heldBack[message.number] == id && id != bytes32(0), "not held back");
        delete heldBack[message.number];
        (bool ok, ) = message.target.call{value: message.value}(message.data);
        require(ok, "call failed");
        emit Delivered(message.number);
    }
}
