// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title HeirloomChest
/// @notice Keeps ether of one owner; an heir can open the chest after a year without a sign of life.
contract HeirloomChest {
    uint256 public constant SILENCE = 365 days;

    address public immutable owner;
    address public heir;
    uint256 public lastSign;

    event Deposited(address indexed from, uint256 amount);
    event Withdrawn(address indexed to, uint256 amount);
    event HeirChanged(address indexed heir);

    constructor(address heir_) payable {
        owner = msg.sender;
        heir = heir_;
        lastSign = block.timestamp;
    }

    receive() external payable {
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice Pays ether out; counts as a sign of life.
    function withdraw(address payable to, uint256 amount) external {
        require(msg.sender == owner, "not owner");
        lastSign = block.timestamp;
        emit Withdrawn(to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Names another heir.
    function changeHeir(address newHeir) external {
        require(msg.sender == owner, "not owner");
        require(newHeir != address(0), "zero heir");
        lastSign = block.timestamp;
        heir = newHeir;
        emit HeirChanged(newHeir);
    }

    /// @notice Gives a sign of life.
    function ping() external {
        require(msg.sender == owner, "not owner");
        lastSign = block.timestamp;
    }

    /// @notice Opens the chest for the heir.
    function inherit() external {
        require(msg.sender == heir, "not heir");
        require(block.timestamp >= lastSign + SILENCE, "owner is alive");
        uint256 amount = address(this).balance;
        emit Withdrawn(heir, amount);
        (bool sent, ) = heir.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
