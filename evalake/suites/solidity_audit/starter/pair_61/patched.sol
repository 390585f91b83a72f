// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title HolidaySavings
/// @notice Ether savings that are locked for sixty days from the last deposit; relatives may add to them.
contract HolidaySavings {
    uint256 public constant LOCK = 60 days;

    mapping(address => uint256) public savings;
    mapping(address => uint256) public unlocksAt;
    mapping(address => mapping(address => uint256)) public giftedBy;
    uint256 public totalSavings;

    event Deposited(address indexed account, address indexed from, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);

    /// @notice Saves ether of the caller.
    function deposit() external payable {
        require(msg.value > 0, "nothing sent");
        savings[msg.sender] += msg.value;
        totalSavings += msg.value;
        unlocksAt[msg.sender] = block.timestamp + LOCK;
        emit Deposited(msg.sender, msg.sender, msg.value);
    }

    /// @notice Adds ether to the savings of a relative.
    function depositFor(address account) external payable {
        require(account != address(0) && msg.value > 0, "nothing sent");
        giftedBy[account][msg.sender] += msg.value;
        savings[account] += msg.value;
        totalSavings += msg.value;
        if (unlocksAt[account] == 0) {
            unlocksAt[account] = block.timestamp + LOCK;
        }
        emit Deposited(account, msg.sender, msg.value);
    }

    /// @notice Pays savings out once the lock has ended.
    function withdraw(uint256 amount) external {
        require(block.timestamp >= unlocksAt[msg.sender], "locked");
        savings[msg.sender] -= amount;
        totalSavings -= amount;
        emit Withdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Seconds until an account can withdraw.
    function lockLeft(address account) external view returns (uint256) {
        return block.timestamp >= unlocksAt[account] ? 0 : unlocksAt[account] - block.timestamp;
    }
}
