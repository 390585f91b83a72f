// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {FlashLender} from "./FlashLender.sol";
import {ILoanReceiver, IToken} from "./Interfaces.sol";

/// @title LeverageDesk
/// @notice Buys a good for a user with the user's tokens and a loan, and repays the loan out of the user's credit.
contract LeverageDesk is ILoanReceiver {
    struct Purchase {
        address user;
        address seller;
        uint256 own;
        uint256 price;
    }

    FlashLender public immutable lender;
    IToken public immutable token;
    mapping(address => uint256) public reserveOf;
    mapping(address => uint256) public bought;

    event Opened(address indexed user, address indexed seller, uint256 price);
    event ReserveAdded(address indexed user, uint256 amount);

    constructor(FlashLender lender_) {
        lender = lender_;
        token = lender_.token();
    }

    /// @notice Adds tokens to the caller's reserve, out of which loans are repaid.
    function addReserve(uint256 amount) external {
        reserveOf[msg.sender] += amount;
        emit ReserveAdded(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Buys with own tokens, which the caller has approved, and a loan for the rest of the price.
    function open(address seller, uint256 own, uint256 price) external {
        require(price >= own, "nothing to lend");
        bytes memory data = abi.encode(Purchase(msg.sender, seller, own, price));
        lender.flashLoan(this, price - own, data);
        emit Opened(msg.sender, seller, price);
    }

    /// @notice Carries a purchase out with the loan.
    function onFlashLoan(address initiator, uint256 amount, bytes calldata data) external override {
        require(msg.sender == address(lender) && initiator == address(this), "not our loan");
        Purchase memory purchase = abi.decode(data, (Purchase));
        require(token.transferFrom(purchase.user, address(this), purchase.own), "transfer failed");
        bought[purchase.user] += purchase.price;
        reserveOf[purchase.user] -= amount;
        require(token.transfer(purchase.seller, purchase.price), "transfer failed");
        require(token.transfer(address(lender), amount), "transfer failed");
    }
}
