// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface ITipToken {
    /// @notice Moves tokens; refuses an amount of zero.
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title CafeTips
/// @notice Guests tip waiters in a token that refuses transfers of zero. The house keeps one percent.
contract CafeTips {
    uint256 public constant HOUSE_BPS = 100;

    ITipToken public immutable token;
    address public immutable house;
    mapping(address => bool) public isWaiter;
    mapping(address => uint256) public tipsOf;
    mapping(address => uint256) public givenBy;
    uint256 public houseShare;

    event WaiterSet(address indexed waiter, bool active);
    event Tipped(address indexed guest, address indexed waiter, uint256 amount);

    constructor(ITipToken token_) {
        token = token_;
        house = msg.sender;
    }

    function setWaiter(address waiter, bool active) external {
        require(msg.sender == house, "not house");
        require(waiter != address(0), "zero address");
        isWaiter[waiter] = active;
        emit WaiterSet(waiter, active);
    }

    /// @notice Tips a waiter with tokens of the caller.
    function tip(address waiter, uint256 amount) external {
        require(isWaiter[waiter], "not a waiter");
        require(amount > 0, "nothing tipped");
        uint256 share = (amount * HOUSE_BPS) / 10_000;
        tipsOf[waiter] += amount - share;
        givenBy[msg.sender] += amount;
        houseShare += share;
        emit Tipped(msg.sender, waiter, amount);
        require(token.transferFrom(msg.sender, waiter, amount - share), "transfer failed");
        require(token.transferFrom(msg.sender, house, share), "transfer failed");
    }
}
