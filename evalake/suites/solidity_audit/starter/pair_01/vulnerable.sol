// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title SavingsPool
/// @notice Holds ether for members, who withdraw after a short holding period.
contract SavingsPool {
    uint256 public constant HOLDING_PERIOD = 1 days;

    address public immutable treasurer;
    uint256 public totalDeposits;
    bool public depositsPaused;

    mapping(address => uint256) private balances;
    mapping(address => uint256) public lastDepositAt;

    event Deposited(address indexed member, uint256 amount);
    event Withdrawn(address indexed member, uint256 amount);
    event AccountClosed(address indexed member, uint256 amount);
    event DepositsPaused(bool paused);

    modifier onlyTreasurer() {
        require(msg.sender == treasurer, "not treasurer");
        _;
    }

    constructor() {
        treasurer = msg.sender;
    }

    /// @notice Adds ether to the caller's balance and restarts the holding period.
    function deposit() external payable {
        require(!depositsPaused, "deposits paused");
        require(msg.value > 0, "nothing sent");
        balances[msg.sender] += msg.value;
        lastDepositAt[msg.sender] = block.timestamp;
        totalDeposits += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice Pays part of the caller's balance out.
    /// @param amount Wei to pay out.
    function withdraw(uint256 amount) external {
        uint256 available = balances[msg.sender];
        require(amount > 0 && amount <= available, "amount exceeds balance");
        require(block.timestamp >= lastDepositAt[msg.sender] + HOLDING_PERIOD, "holding period");

        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");

        balances[msg.sender] = available - amount;
        totalDeposits -= amount;
        emit Withdrawn(msg.sender, amount);
    }

    /// @notice Pays the caller's whole balance out and forgets the account.
    function closeAccount() external {
        uint256 amount = balances[msg.sender];
        require(amount > 0, "no balance");
        require(block.timestamp >= lastDepositAt[msg.sender] + HOLDING_PERIOD, "holding period");

        delete balances[msg.sender];
        delete lastDepositAt[msg.sender];
        totalDeposits -= amount;
        emit AccountClosed(msg.sender, amount);

        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Stops or resumes new deposits; withdrawals stay open.
    function setDepositsPaused(bool paused) external onlyTreasurer {
        depositsPaused = paused;
        emit DepositsPaused(paused);
    }

    /// @notice Balance of one member in wei.
    function balanceOf(address member) external view returns (uint256) {
        return balances[member];
    }

    /// @notice First moment at which the member may withdraw.
    function withdrawableAt(address member) external view returns (uint256) {
        return lastDepositAt[member] + HOLDING_PERIOD;
    }
}
