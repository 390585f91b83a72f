// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Ledger
/// @notice Credit of accounts in wei. Desks that the keeper admits may write it; the ether lies at the desks.
contract Ledger {
    address public immutable keeper;
    mapping(address => bool) public isDesk;
    mapping(address => uint256) public creditOf;
    uint256 public totalCredit;

    event DeskSet(address indexed desk, bool active);
    event CreditSet(address indexed account, uint256 credit);

    constructor() {
        keeper = msg.sender;
    }

    modifier onlyDesk() {
        require(isDesk[msg.sender], "not a desk");
        _;
    }

    function setDesk(address desk, bool active) external {
        require(msg.sender == keeper, "not keeper");
        isDesk[desk] = active;
        emit DeskSet(desk, active);
    }

    /// @notice Writes the credit of an account.
    function setCredit(address account, uint256 credit) external onlyDesk {
        totalCredit = totalCredit - creditOf[account] + credit;
        creditOf[account] = credit;
        emit CreditSet(account, credit);
    }
}
