// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {ILoanReceiver, IToken} from "./Interfaces.sol";

/// @title FlashLender
/// @notice Lends a token for the length of one call.
contract FlashLender {
    IToken public immutable token;

    event Lent(address indexed receiver, uint256 amount);

    constructor(IToken token_) {
        token = token_;
    }

    function flashLoan(ILoanReceiver receiver, uint256 amount, bytes calldata data) external {
        uint256 before = token.balanceOf(address(this));
        emit Lent(address(receiver), amount);
        require(token.transfer(address(receiver), amount), "transfer failed");
        receiver.onFlashLoan(msg.sender, amount, data);
        require(token.balanceOf(address(this)) >= before, "not returned");
    }
}
