// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Notes
/// @notice Remembers who left the last note.
abstract contract Notes {
    address public lastNoter;

    event NoteLeft(address indexed from, string note);

    function leaveNote(string calldata note) external {
        lastNoter = msg.sender;
        emit NoteLeft(msg.sender, note);
    }
}
