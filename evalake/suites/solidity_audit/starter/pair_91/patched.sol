// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

interface ISwapPool {
    /// @notice Swaps reward tokens of the caller for stake tokens and reverts below the least amount.
    function swap(uint256 amountIn, uint256 leastOut) external returns (uint256 amountOut);
}

interface IReference {
    /// @notice Stake tokens per reward token, scaled by 1e18, averaged over the last day.
    function averageRate() external view returns (uint256);
}

/// @title AutoCompounder
/// @notice Stakers share the stake tokens that the collected rewards buy.
contract AutoCompounder {
    uint256 public constant TOLERANCE_BPS = 200;

    IERC20 public immutable stakeToken;
    IERC20 public immutable rewardToken;
    ISwapPool public immutable pool;
    IReference public immutable reference_;
    uint256 public totalShares;
    uint256 public totalStake;
    mapping(address => uint256) public sharesOf;

    event Compounded(uint256 rewards, uint256 bought);

    constructor(IERC20 stakeToken_, IERC20 rewardToken_, ISwapPool pool_, IReference ref) {
        stakeToken = stakeToken_;
        rewardToken = rewardToken_;
        pool = pool_;
        reference_ = ref;
    }

    function stake(uint256 amount) external {
        uint256 shares = totalShares == 0 ? amount : (amount * totalShares) / totalStake;
        require(shares > 0, "too little");
        totalShares += shares;
        totalStake += amount;
        sharesOf[msg.sender] += shares;
        require(stakeToken.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function unstake(uint256 shares) external {
        uint256 amount = (shares * totalStake) / totalShares;
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        totalStake -= amount;
        require(stakeToken.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Swaps the rewards that have come in and adds what they buy to the stake.
    function compound() external returns (uint256 bought) {
        uint256 rewards = rewardToken.balanceOf(address(this));
        require(rewards > 0 && totalShares > 0, "nothing to do");
        require(rewardToken.transfer(address(pool), rewards), "transfer failed");
        uint256 expected = (rewards * reference_.averageRate()) / 1e18;
        bought = pool.swap(rewards, (expected * (10_000 - TOLERANCE_BPS)) / 10_000);
        totalStake += bought;
        emit Compounded(rewards, bought);
    }
}
