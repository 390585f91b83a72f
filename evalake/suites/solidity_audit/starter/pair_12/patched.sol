// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title HarvestStaking
/// @notice Streams a reward token to the stakers of another token, in proportion to stake and time.
/// @dev Both tokens are distinct, take no transfer fee and return true on success.
contract HarvestStaking {
    uint256 public constant REWARD_PERIOD = 7 days;
    uint256 private constant PRECISION = 1e18;

    IERC20 public immutable stakeToken;
    IERC20 public immutable rewardToken;
    address public immutable distributor;

    uint256 public totalStaked;
    uint256 public rewardRate;
    uint256 public periodEndsAt;
    uint256 public lastUpdateAt;
    uint256 public rewardIndex;

    mapping(address => uint256) public stakeOf;
    mapping(address => uint256) public paidIndex;
    mapping(address => uint256) public accrued;

    event Staked(address indexed payer, address indexed account, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);
    event Claimed(address indexed account, uint256 amount);
    event RewardsAdded(uint256 amount, uint256 rate);

    constructor(IERC20 stakeToken_, IERC20 rewardToken_) {
        require(address(stakeToken_) != address(rewardToken_), "same token");
        stakeToken = stakeToken_;
        rewardToken = rewardToken_;
        distributor = msg.sender;
    }

    /// @notice Stakes tokens of the caller.
    function stake(uint256 amount) external {
        _checkpoint(msg.sender);
        _addStake(msg.sender, amount);
    }

    /// @notice Stakes tokens of the caller in the name of another account.
    function stakeFor(address account, uint256 amount) external {
        require(account != address(0), "zero account");
        _checkpoint(account);
        _addStake(account, amount);
    }

    /// @notice Returns staked tokens to the caller.
    function withdraw(uint256 amount) external {
        _checkpoint(msg.sender);
        stakeOf[msg.sender] -= amount;
        totalStaked -= amount;
        emit Withdrawn(msg.sender, amount);
        require(stakeToken.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Pays the caller's rewards.
    function claim() external {
        _checkpoint(msg.sender);
        uint256 amount = accrued[msg.sender];
        accrued[msg.sender] = 0;
        emit Claimed(msg.sender, amount);
        require(rewardToken.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Adds rewards and streams them, with what is left of the running period, over a new one.
    function addRewards(uint256 amount) external {
        require(msg.sender == distributor, "not distributor");
        _checkpoint(address(0));
        uint256 left = block.timestamp < periodEndsAt ? (periodEndsAt - block.timestamp) * rewardRate : 0;
        rewardRate = (left + amount) / REWARD_PERIOD;
        lastUpdateAt = block.timestamp;
        periodEndsAt = block.timestamp + REWARD_PERIOD;
        emit RewardsAdded(amount, rewardRate);
        require(rewardToken.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Reward per staked token since the start, scaled by 1e18.
    function currentIndex() public view returns (uint256) {
        uint256 until = block.timestamp < periodEndsAt ? block.timestamp : periodEndsAt;
        if (totalStaked == 0 || until <= lastUpdateAt) {
            return rewardIndex;
        }
        return rewardIndex + ((until - lastUpdateAt) * rewardRate * PRECISION) / totalStaked;
    }

    /// @notice Rewards that an account could claim now.
    function earned(address account) public view returns (uint256) {
        return accrued[account] + (stakeOf[account] * (currentIndex() - paidIndex[account])) / PRECISION;
    }

    function _addStake(address account, uint256 amount) private {
        require(amount > 0, "nothing staked");
        stakeOf[account] += amount;
        totalStaked += amount;
        emit Staked(msg.sender, account, amount);
        require(stakeToken.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @dev Brings the index up to date and settles an account against it.
    function _checkpoint(address account) private {
        rewardIndex = currentIndex();
        lastUpdateAt = block.timestamp;
        if (account != address(0)) {
            accrued[account] = earned(account);
            paidIndex[account] = rewardIndex;
        }
    }
}
