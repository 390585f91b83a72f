// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title GuildSafe
/// @notice Keeps a token for guild members. The token's balances may grow by themselves between transfers.
contract GuildSafe {
    IERC20 public immutable token;
    address public immutable guild;
    uint256 public totalRecorded;
    mapping(address => bool) public isMember;
    mapping(address => uint256) public recorded;

    event MemberSet(address indexed account, bool active);
    event Deposited(address indexed member, uint256 amount);
    event Withdrawn(address indexed member, uint256 amount);

    constructor(IERC20 token_) {
        token = token_;
        guild = msg.sender;
    }

    function setMember(address account, bool active) external {
        require(msg.sender == guild, "not guild");
        isMember[account] = active;
        emit MemberSet(account, active);
    }

    /// @notice Tokens that belong to an account now.
    function balanceOf(address account) public view returns (uint256) {
        return recorded[account];
    }

    function deposit(uint256 amount) external {
        require(isMember[msg.sender] && amount > 0, "cannot deposit");
        recorded[msg.sender] += amount;
        totalRecorded += amount;
        emit Deposited(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function withdraw(uint256 amount) external {
        require(amount > 0 && amount <= balanceOf(msg.sender), "not that much");
        recorded[msg.sender] -= amount;
        totalRecorded -= amount;
        emit Withdrawn(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }
}
