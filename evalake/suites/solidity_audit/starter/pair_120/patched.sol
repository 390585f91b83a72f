// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title MarketCards
/// @notice Cards for a market; the first card of an account gets a bonus of two percent, at most 0.001 ether.
contract MarketCards {
    uint256 public constant BONUS_BPS = 200;
    uint256 public constant MOST_BONUS = 0.001 ether;

    address public immutable market;
    mapping(address => uint256) public creditOf;
    mapping(address => uint256) public bonusOf;
    mapping(address => bool) public hadBonus;
    mapping(address => bool) public isTrader;
    mapping(address => uint256) public takings;

    event Bought(address indexed account, uint256 paid, uint256 bonus);
    event Spent(address indexed account, address indexed trader, uint256 amount);
    event GivenBack(address indexed account, uint256 amount);

    constructor() payable {
        market = msg.sender;
    }

    function setTrader(address account, bool active) external {
        require(msg.sender == market, "not market");
        isTrader[account] = active;
    }

    /// @notice Buys credit.
    function buyCard() external payable {
        require(msg.value > 0, "nothing paid");
        uint256 bonus = 0;
        if (!hadBonus[msg.sender]) {
            hadBonus[msg.sender] = true;
            bonus = (msg.value * BONUS_BPS) / 10_000;
            bonus = bonus > MOST_BONUS ? MOST_BONUS : bonus;
            bonusOf[msg.sender] = bonus;
        }
        creditOf[msg.sender] += msg.value + bonus;
        emit Bought(msg.sender, msg.value, bonus);
    }

    /// @notice Pays a trader with credit; the bonus is used up last.
    function spend(address trader, uint256 amount) external {
        require(isTrader[trader], "not a trader");
        creditOf[msg.sender] -= amount;
        if (bonusOf[msg.sender] > creditOf[msg.sender]) {
            bonusOf[msg.sender] = creditOf[msg.sender];
        }
        takings[trader] += amount;
        emit Spent(msg.sender, trader, amount);
    }

    /// @notice Pays the caller's credit back and ends the card.
    function giveBack() external {
        uint256 amount = creditOf[msg.sender] - bonusOf[msg.sender];
        require(amount > 0, "no credit");
        creditOf[msg.sender] = 0;
        bonusOf[msg.sender] = 0;
        emit GivenBack(msg.sender, amount);
        _pay(msg.sender, amount);
    }

    function collect() external {
        uint256 amount = takings[msg.sender];
        takings[msg.sender] = 0;
        _pay(msg.sender, amount);
    }

    function _pay(address to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
