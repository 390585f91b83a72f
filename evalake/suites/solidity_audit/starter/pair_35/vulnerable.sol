// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title InvestmentClub
/// @notice Members hold whole units of a common fund; income raises the value of every unit.
/// @dev The token has 18 decimals, takes no transfer fee and returns true on success.
contract InvestmentClub {
    uint256 public constant FIRST_UNIT_PRICE = 1e18;
    uint256 public constant HOLDING_PERIOD = 30 days;

    IERC20 public immutable token;
    address public immutable secretary;
    uint256 public totalUnits;
    uint256 public totalAssets;

    mapping(address => bool) public isMember;
    mapping(address => uint256) public unitsOf;
    mapping(address => uint256) public lastPurchaseAt;

    event MemberAdmitted(address indexed member);
    event UnitsBought(address indexed member, uint256 units, uint256 cost);
    event Withdrawn(address indexed member, uint256 amount, uint256 units);
    event IncomeAdded(address indexed from, uint256 amount);

    constructor(IERC20 token_) {
        token = token_;
        secretary = msg.sender;
    }

    function admit(address member) external {
        require(msg.sender == secretary, "not secretary");
        isMember[member] = true;
        emit MemberAdmitted(member);
    }

    /// @notice Tokens that a number of units cost, rounded up.
    function costOf(uint256 units) public view returns (uint256) {
        if (totalUnits == 0) {
            return units * FIRST_UNIT_PRICE;
        }
        return (units * totalAssets + totalUnits - 1) / totalUnits;
    }

    /// @notice Units that are burned for withdrawing an amount.
    function unitsFor(uint256 amount) public view returns (uint256) {
        return (amount * totalUnits) / totalAssets;
    }

    /// @notice Buys units for the caller.
    /// @param maxCost Most tokens that the caller is willing to pay.
    function buy(uint256 units, uint256 maxCost) external {
        require(isMember[msg.sender], "not a member");
        require(units > 0, "no units");
        uint256 cost = costOf(units);
        require(cost <= maxCost, "too expensive");
        totalUnits += units;
        totalAssets += cost;
        unitsOf[msg.sender] += units;
        lastPurchaseAt[msg.sender] = block.timestamp;
        emit UnitsBought(msg.sender, units, cost);
        require(token.transferFrom(msg.sender, address(this), cost), "transfer failed");
    }

    /// @notice Withdraws an amount of tokens against the caller's units.
    /// @param maxUnits Most units that the caller is willing to give up.
    function withdraw(uint256 amount, uint256 maxUnits) external {
        require(amount > 0, "nothing withdrawn");
        require(unitsOf[msg.sender] > 0, "no units");
        require(block.timestamp >= lastPurchaseAt[msg.sender] + HOLDING_PERIOD, "holding period");
        uint256 units = unitsFor(amount);
        require(units <= maxUnits, "too many units");
        unitsOf[msg.sender] -= units;
        totalUnits -= units;
        totalAssets -= amount;
        emit Withdrawn(msg.sender, amount, units);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Adds income for all units.
    function addIncome(uint256 amount) external {
        require(totalUnits > 0, "no units");
        totalAssets += amount;
        emit IncomeAdded(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Value of a member's units, rounded down.
    function valueOf(address member) external view returns (uint256) {
        return totalUnits == 0 ? 0 : (unitsOf[member] * totalAssets) / totalUnits;
    }
}
