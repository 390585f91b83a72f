// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Coin} from "./Coin.sol";
import {Pool} from "./Pool.sol";

interface IGrainFeed {
    /// @notice Cash for 1e18 of grain, scaled by 1e18, as reported within the last hour.
    function price() external view returns (uint256);
}

/// @title ShareLoans
/// @notice Lends cash against pool shares, up to sixty percent of their value.
contract ShareLoans {
    uint256 public constant LOAN_BPS = 6_000;

    Pool public immutable pool;
    Coin public immutable cash;
    IGrainFeed public immutable feed;
    mapping(address => uint256) public pledged;
    mapping(address => uint256) public debtOf;

    constructor(Pool pool_, IGrainFeed feed_) {
        pool = pool_;
        cash = pool_.cash();
        feed = feed_;
    }

    /// @notice Cash value of pool shares.
    function valueOf(uint256 shares) public view returns (uint256) {
        uint256 invariant = _root(pool.cashReserve() * pool.grainReserve());
        return (2 * invariant * _root(feed.price() * 1e18) * shares) / (pool.totalShares() * 1e18);
    }

    function pledge(uint256 shares) external {
        pledged[msg.sender] += shares;
        pool.move(msg.sender, address(this), shares);
    }

    function release(uint256 shares) external {
        pledged[msg.sender] -= shares;
        require(debtOf[msg.sender] * 10_000 <= valueOf(pledged[msg.sender]) * LOAN_BPS, "debt not covered");
        pool.move(address(this), msg.sender, shares);
    }

    function borrow(uint256 amount) external {
        debtOf[msg.sender] += amount;
        require(debtOf[msg.sender] * 10_000 <= valueOf(pledged[msg.sender]) * LOAN_BPS, "debt not covered");
        cash.transfer(msg.sender, amount);
    }

    function repay(uint256 amount) external {
        debtOf[msg.sender] -= amount;
        cash.transferFrom(msg.sender, address(this), amount);
    }

    /// @notice Integer square root.
    function _root(uint256 value) internal pure returns (uint256 root) {
        root = value;
        uint256 next = value / 2 + 1;
        while (next < root) {
            root = next;
            next = (value / next + next) / 2;
        }
    }
}
