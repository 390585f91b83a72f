// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Ledger} from "./Ledger.sol";

/// @title CashDesk
/// @notice Takes ether for credit and pays credit out. One call at a time.
contract CashDesk {
    Ledger public immutable ledger;
    bool private busy;

    event PaidIn(address indexed account, uint256 amount);
    event CashedOut(address indexed account, uint256 amount);

    error Busy();

    modifier oneAtATime() {
        if (busy) revert Busy();
        busy = true;
        _;
        busy = false;
    }

    constructor(Ledger ledger_) {
        ledger = ledger_;
    }

    function payIn() external payable oneAtATime {
        ledger.setCredit(msg.sender, ledger.creditOf(msg.sender) + msg.value);
        emit PaidIn(msg.sender, msg.value);
    }

    /// @notice Pays part of the caller's credit out.
    function cashOut(uint256 amount) external oneAtATime {
        uint256 credit = ledger.creditOf(msg.sender);
        require(amount > 0 && amount <= credit, "credit too low");
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
        ledger.setCredit(msg.sender, credit - amount);
        emit CashedOut(msg.sender, amount);
    }
}
