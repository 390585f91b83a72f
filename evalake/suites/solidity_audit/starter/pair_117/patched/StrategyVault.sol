// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IToken} from "./Interfaces.sol";
import {Strategy} from "./Strategy.sol";

/// @title StrategyVault
/// @notice Holders' tokens, partly lent to strategies; the books say how much each strategy owes.
contract StrategyVault {
    IToken public immutable token;
    address public immutable manager;
    Strategy[] public strategies;
    mapping(Strategy => uint256) public debtOf;
    mapping(Strategy => bool) public isStrategy;
    uint256 public totalDebt;
    uint256 public totalShares;
    mapping(address => uint256) public sharesOf;

    event Deposited(address indexed holder, uint256 amount, uint256 shares);
    event Redeemed(address indexed holder, uint256 amount, uint256 shares);
    event Lent(address indexed strategy, uint256 amount);
    event Migrated(address indexed from, address indexed to, uint256 amount);

    modifier onlyManager() {
        require(msg.sender == manager, "not manager");
        _;
    }

    constructor(IToken token_) {
        token = token_;
        manager = msg.sender;
    }

    /// @notice Tokens here and at the strategies.
    function totalAssets() public view returns (uint256) {
        return token.balanceOf(address(this)) + totalDebt;
    }

    function deposit(uint256 amount) external returns (uint256 shares) {
        shares = totalShares == 0 ? amount : (amount * totalShares) / totalAssets();
        require(shares > 0, "too little");
        totalShares += shares;
        sharesOf[msg.sender] += shares;
        emit Deposited(msg.sender, amount, shares);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Redeems shares; strategies give back what is missing here.
    function redeem(uint256 shares) external returns (uint256 amount) {
        amount = (shares * totalAssets()) / totalShares;
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        uint256 here = token.balanceOf(address(this));
        for (uint256 i = 0; i < strategies.length && here < amount; i++) {
            uint256 given = strategies[i].giveBack(amount - here);
            debtOf[strategies[i]] -= given > debtOf[strategies[i]] ? debtOf[strategies[i]] : given;
            totalDebt -= given > totalDebt ? totalDebt : given;
            here += given;
        }
        emit Redeemed(msg.sender, amount, shares);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    function addStrategy(Strategy strategy) public onlyManager {
        require(!isStrategy[strategy] && strategy.vault() == address(this), "bad strategy");
        isStrategy[strategy] = true;
        strategies.push(strategy);
    }

    function lend(Strategy strategy, uint256 amount) external onlyManager {
        require(isStrategy[strategy] && !strategy.retired(), "not in use");
        debtOf[strategy] += amount;
        totalDebt += amount;
        emit Lent(address(strategy), amount);
        require(token.transfer(address(strategy), amount), "transfer failed");
    }

    /// @notice Replaces a strategy by another.
    function migrate(Strategy from, Strategy to) external onlyManager {
        require(isStrategy[from] && !from.retired(), "not in use");
        addStrategy(to);
        uint256 moved = from.handOver(address(to));
        totalDebt = totalDebt - debtOf[from] + moved;
        debtOf[from] = 0;
        debtOf[to] += moved;
        emit Migrated(address(from), address(to), moved);
    }
}
