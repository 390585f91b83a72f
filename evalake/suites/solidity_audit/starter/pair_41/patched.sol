// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RowingClubFund
/// @notice Ether of a club. The chair appoints a treasurer, who pays bills up to a yearly budget.
contract RowingClubFund {
    address public immutable chair;
    address public treasurer;
    uint256 public budget;
    uint256 public spent;
    uint256 public yearEndsAt;

    event Appointed(address indexed treasurer);
    event BudgetSet(uint256 budget);
    event Paid(address indexed to, uint256 amount, string purpose);

    modifier onlyChair() {
        require(msg.sender == chair, "not chair");
        _;
    }

    constructor() payable {
        chair = msg.sender;
        yearEndsAt = block.timestamp + 365 days;
    }

    receive() external payable {}

    /// @notice Puts a treasurer in charge of the budget.
    function appoint(address account) external onlyChair {
        require(account != address(0), "zero address");
        treasurer = account;
        emit Appointed(account);
    }

    /// @notice Sets what may be spent until the year ends.
    function setBudget(uint256 amount) external onlyChair {
        budget = amount;
        emit BudgetSet(amount);
    }

    /// @notice Pays a bill within the budget.
    function spend(address payable to, uint256 amount, string calldata purpose) external {
        require(msg.sender == treasurer, "not treasurer");
        if (block.timestamp >= yearEndsAt) {
            yearEndsAt += 365 days;
            spent = 0;
        }
        require(spent + amount <= budget, "over budget");
        spent += amount;
        emit Paid(to, amount, purpose);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
