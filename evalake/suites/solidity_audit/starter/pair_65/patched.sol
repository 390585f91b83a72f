// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NewcomerDesk
/// @notice Greets registered newcomers of a town with a small gift out of a monthly budget.
contract NewcomerDesk {
    uint256 public constant GIFT = 0.05 ether;
    uint256 public constant MONTH = 30 days;

    address public immutable mayor;
    uint256 public budget;
    uint256 public budgetSetAt;
    mapping(address => bool) public isNewcomer;
    mapping(address => bool) public welcomed;

    event Registered(address indexed account);
    event Welcomed(address indexed account);
    event BudgetSet(uint256 budget);

    modifier onlyMayor() {
        require(msg.sender == mayor, "not mayor");
        _;
    }

    constructor() payable {
        mayor = msg.sender;
    }

    function register(address account) external onlyMayor {
        isNewcomer[account] = true;
        emit Registered(account);
    }

    /// @notice Sets the budget of the month.
    function setBudget() external payable onlyMayor {
        require(block.timestamp >= budgetSetAt + MONTH, "once a month");
        budgetSetAt = block.timestamp;
        budget = address(this).balance;
        emit BudgetSet(budget);
    }

    /// @notice Sends the caller the gift, once.
    function takeWelcome() external {
        require(isNewcomer[msg.sender], "not registered");
        require(!welcomed[msg.sender], "already welcomed");
        require(budget >= GIFT, "budget spent");
        budget -= GIFT;
        welcomed[msg.sender] = true;
        (bool sent, ) = msg.sender.call{value: GIFT}("");
        require(sent, "transfer failed");
        emit Welcomed(msg.sender);
    }
}
