// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title PackedPool
/// @notice Pools a token; a position is packed into one slot. Leftover tokens are shared out at the end.
contract PackedPool {
    struct Position {
        uint96 amount;
        uint40 openedAt;
        bool closed;
    }

    IERC20 public immutable token;
    uint256 public immutable endsAt;
    uint256 public totalRecorded;
    mapping(address => Position) public positions;

    event Deposited(address indexed account, uint256 amount);
    event Closed(address indexed account, uint256 paid);

    constructor(IERC20 token_, uint256 duration) {
        token = token_;
        endsAt = block.timestamp + duration;
    }

    /// @notice Adds tokens of the caller to the position of an account.
    function deposit(address account, uint256 amount) external {
        require(block.timestamp < endsAt, "pool ended");
        Position storage position = positions[account];
        require(amount > 0 && !position.closed, "cannot deposit");
        if (position.openedAt == 0) {
            position.openedAt = uint40(block.timestamp);
        }
        uint256 before = position.amount;
        position.amount = uint96(before + amount);
        totalRecorded = totalRecorded - before + position.amount;
        emit Deposited(account, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Pays the caller its part of everything that is here.
    function close() external {
        require(block.timestamp >= endsAt, "pool running");
        Position storage position = positions[msg.sender];
        require(position.amount > 0 && !position.closed, "no position");
        uint256 paid = (token.balanceOf(address(this)) * position.amount) / totalRecorded;
        position.closed = true;
        totalRecorded -= position.amount;
        emit Closed(msg.sender, paid);
        require(token.transfer(msg.sender, paid), "transfer failed");
    }
}
