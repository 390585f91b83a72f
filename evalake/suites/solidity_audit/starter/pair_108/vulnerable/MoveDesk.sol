// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Ledger} from "./Ledger.sol";

/// @title MoveDesk
/// @notice Moves credit between accounts, at once or by standing orders of the account.
contract MoveDesk {
    Ledger public immutable ledger;
    mapping(address => mapping(address => uint256)) public orderOf;
    mapping(address => mapping(address => uint256)) public lastRunAt;

    event Moved(address indexed from, address indexed to, uint256 amount);
    event OrderSet(address indexed from, address indexed to, uint256 monthly);

    constructor(Ledger ledger_) {
        ledger = ledger_;
    }

    /// @notice Moves credit of the caller.
    function move(address to, uint256 amount) external {
        _move(msg.sender, to, amount);
    }

    /// @notice Orders a monthly move; zero ends it.
    function setOrder(address to, uint256 monthly) external {
        orderOf[msg.sender][to] = monthly;
        emit OrderSet(msg.sender, to, monthly);
    }

    /// @notice Runs a standing order whose month has come.
    function runOrder(address from, address to) external {
        uint256 monthly = orderOf[from][to];
        require(monthly > 0, "no order");
        require(block.timestamp >= lastRunAt[from][to] + 30 days, "not due");
        lastRunAt[from][to] = block.timestamp;
        _move(from, to, monthly);
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0) && to != from, "bad recipient");
        uint256 credit = ledger.creditOf(from);
        require(amount <= credit, "credit too low");
        ledger.setCredit(from, credit - amount);
        ledger.setCredit(to, ledger.creditOf(to) + amount);
        emit Moved(from, to, amount);
    }
}
