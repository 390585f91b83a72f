// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title VoteToken
/// @notice Token that knows each balance as it was at the end of the last block.
contract VoteToken {
    struct Holding {
        uint128 now_;
        uint128 before;
        uint64 changedIn;
    }

    uint256 public immutable totalSupply;
    mapping(address => Holding) private holdings;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint128 supply) {
        totalSupply = supply;
        holdings[msg.sender].now_ = supply;
    }

    function balanceOf(address account) public view returns (uint256) {
        return holdings[account].now_;
    }

    /// @notice Balance at the end of the last block.
    function settledBalanceOf(address account) public view returns (uint256) {
        Holding storage holding = holdings[account];
        return holding.changedIn == block.number ? holding.before : holding.now_;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    function _move(address from, address to, uint256 amount) private {
        _set(from, balanceOf(from) - amount);
        _set(to, balanceOf(to) + amount);
        emit Transfer(from, to, amount);
    }

    function _set(address account, uint256 balance) private {
        Holding storage holding = holdings[account];
        if (holding.changedIn != block.number) {
            holding.before = holding.now_;
            holding.changedIn = uint64(block.number);
        }
        holding.now_ = uint128(balance);
    }
}
