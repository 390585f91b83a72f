// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NotePlugin
/// @notice Plugin that lets anyone leave a note of 32 bytes for the owner of an account.
contract NotePlugin {
    PluginSlots private slots;

    struct PluginSlots {
        uint256[2] reserved;
        mapping(bytes32 => bytes32) pluginData;
    }

    event NoteLeft(address indexed from, bytes32 note);

    function leaveNote(bytes32 note) external {
        slots.pluginData[keccak256(abi.encode("note", msg.sender))] = note;
        emit NoteLeft(msg.sender, note);
    }

    function noteOf(address from) external view returns (bytes32) {
        return slots.pluginData[keccak256(abi.encode("note", from))];
    }
}
