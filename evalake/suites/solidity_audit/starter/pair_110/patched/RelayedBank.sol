// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {RelayAware} from "./RelayAware.sol";

/// @title RelayedBank
/// @notice Ether accounts that can be used through the relay as well as directly.
contract RelayedBank is RelayAware {
    mapping(address => uint256) public balanceOf;
    uint256 public totalBalance;

    event Deposited(address indexed account, uint256 amount);
    event Moved(address indexed from, address indexed to, uint256 amount);
    event Withdrawn(address indexed account, address indexed to, uint256 amount);

    constructor(address relay_) RelayAware(relay_) {}

    function deposit(address account) external payable {
        require(account != address(0), "zero address");
        balanceOf[account] += msg.value;
        totalBalance += msg.value;
        emit Deposited(account, msg.value);
    }

    /// @notice Moves ether to another account of the bank.
    function move(address to, uint256 amount) external {
        address from = _sender();
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Moved(from, to, amount);
    }

    /// @notice Pays ether out.
    function withdraw(address payable to, uint256 amount) external {
        address account = _sender();
        balanceOf[account] -= amount;
        totalBalance -= amount;
        emit Withdrawn(account, to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
