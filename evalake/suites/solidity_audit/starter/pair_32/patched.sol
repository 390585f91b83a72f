// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title LoyaltyPoints
/// @notice Points of a shop chain: earned at partners, moved between holders, redeemed for goods.
contract LoyaltyPoints {
    string public constant name = "Loyalty Points";
    string public constant symbol = "LOYAL";
    uint8 public constant decimals = 2;

    address public immutable chain;
    uint256 public totalSupply;

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) public partnerBudget;
    mapping(bytes32 => uint256) public priceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);
    event BudgetSet(address indexed partner, uint256 budget);
    event PriceSet(bytes32 indexed article, uint256 price);
    event Redeemed(address indexed holder, bytes32 indexed article, uint256 quantity);

    modifier onlyChain() {
        require(msg.sender == chain, "not chain");
        _;
    }

    constructor() {
        chain = msg.sender;
    }

    /// @notice Sets how many points a partner may still grant.
    function setBudget(address partner, uint256 budget) external onlyChain {
        partnerBudget[partner] = budget;
        emit BudgetSet(partner, budget);
    }

    /// @notice Sets the price of an article; zero takes it off the list.
    function setPrice(bytes32 article, uint256 price) external onlyChain {
        priceOf[article] = price;
        emit PriceSet(article, price);
    }

    /// @notice Grants points of the calling partner's budget to a customer.
    function grant(address customer, uint256 amount) external {
        require(customer != address(0), "zero address");
        partnerBudget[msg.sender] -= amount;
        totalSupply += amount;
        balanceOf[customer] += amount;
        emit Transfer(address(0), customer, amount);
    }

    /// @notice Redeems points of the caller for an article.
    /// @param maxPrice Highest price per piece that the caller accepts.
    function redeem(bytes32 article, uint256 quantity, uint256 maxPrice) external {
        uint256 price = priceOf[article];
        require(price > 0 && price <= maxPrice, "price changed");
        uint256 cost = price * quantity;
        balanceOf[msg.sender] -= cost;
        totalSupply -= cost;
        emit Transfer(msg.sender, address(0), cost);
        emit Redeemed(msg.sender, article, quantity);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    /// @notice Moves points, by allowance where one is needed.
    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        if (!_mayMove(from)) {
            allowance[from][msg.sender] -= amount;
        }
        _move(from, to, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "zero address");
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }

    /// @dev Whether the current call may move points of the holder without an allowance.
    function _mayMove(address holder) private view returns (bool) {
        return msg.sender == holder;
    }
}
