// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title LighthouseStaking
/// @notice Stakes a token that notifies receiving contracts of each transfer. Unstaking is possible after a day.
contract LighthouseStaking {
    uint256 public constant MIN_TIME = 1 days;

    IERC20 public immutable token;
    uint256 public totalStaked;
    mapping(address => uint256) public stakeOf;
    mapping(address => uint256) public stakedAt;

    event Staked(address indexed account, uint256 amount);
    event Unstaked(address indexed account, uint256 amount);

    error NothingStaked();
    error TooEarly(uint256 from);

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Stakes tokens; the waiting time starts anew.
    function stake(uint256 amount) external {
        require(amount > 0, "nothing to stake");
        stakeOf[msg.sender] += amount;
        stakedAt[msg.sender] = block.timestamp;
        totalStaked += amount;
        emit Staked(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Returns the caller's whole stake.
    function unstake() external {
        uint256 amount = stakeOf[msg.sender];
        if (amount == 0) revert NothingStaked();
        uint256 from = stakedAt[msg.sender] + MIN_TIME;
        if (block.timestamp < from) revert TooEarly(from);
        require(token.transfer(msg.sender, amount), "transfer failed");
        stakeOf[msg.sender] = 0;
        totalStaked = totalStaked > amount ? totalStaked - amount : 0;
        emit Unstaked(msg.sender, amount);
    }

    /// @notice An account's part of all stakes, in ten-thousandths.
    function partOf(address account) external view returns (uint256) {
        return totalStaked == 0 ? 0 : (stakeOf[account] * 10_000) / totalStaked;
    }
}
