// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Owned
/// @notice An owner, set once.
abstract contract Owned {
    address public owner;

    event OwnerSet(address indexed owner);

    modifier onlyOwner() {
        require(msg.sender == owner, "not owner");
        _;
    }

    function initialize(address owner_) external {
        require(owner == address(0) && owner_ != address(0), "already initialized");
        owner = owner_;
        emit OwnerSet(owner_);
    }
}
