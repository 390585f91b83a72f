// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title CloneWallet
/// @notice Logic of wallets; clones hold the state. A wallet has an owner and a daily limit for its helper.
contract CloneWallet {
    address public owner;
    address public helper;
    uint256 public dailyLimit;
    uint256 public day;
    uint256 public spentToday;

    event Initialized(address indexed owner);
    event HelperSet(address indexed helper, uint256 dailyLimit);
    event Paid(address indexed to, uint256 amount);

    receive() external payable {}

    /// @notice Sets the owner of a fresh clone.
    function initialize(address owner_) external {
        require(owner == address(0) && owner_ != address(0), "already initialized");
        owner = owner_;
        emit Initialized(owner_);
    }

    function setHelper(address helper_, uint256 dailyLimit_) external {
        require(msg.sender == owner, "not owner");
        helper = helper_;
        dailyLimit = dailyLimit_;
        emit HelperSet(helper_, dailyLimit_);
    }

    /// @notice Pays ether out; the helper within the daily limit.
    function pay(address payable to, uint256 amount) external {
        if (msg.sender != owner) {
            require(msg.sender == helper, "not allowed");
            if (block.timestamp / 1 days != day) {
                day = block.timestamp / 1 days;
                spentToday = 0;
            }
            spentToday += amount;
            require(spentToday <= dailyLimit, "daily limit");
        }
        emit Paid(to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
