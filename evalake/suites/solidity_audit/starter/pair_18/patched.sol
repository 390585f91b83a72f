// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title TimeLockRewards
/// @notice Locks tokens; longer locks weigh more when rewards in the same token are distributed.
/// @dev The token takes no transfer fee and returns true on success.
contract TimeLockRewards {
    struct Lock {
        uint128 amount;
        uint40 unlockAt;
        uint256 weight;
        uint256 paidIndex;
    }

    uint256 public constant MIN_DURATION = 30 days;
    uint256 public constant FULL_DURATION = 4 * 365 days;
    uint256 private constant PRECISION = 1e18;

    IERC20 public immutable token;
    uint256 public totalWeight;
    uint256 public rewardIndex;

    mapping(address => Lock) public locks;

    event LockCreated(address indexed account, uint256 amount, uint256 unlockAt, uint256 weight);
    event Withdrawn(address indexed account, uint256 amount);
    event RewardsDistributed(address indexed from, uint256 amount);
    event RewardsClaimed(address indexed account, uint256 amount);

    error LockExists();
    error NoLock();
    error DurationOutOfRange(uint256 duration);
    error StillLocked(uint256 unlockAt);
    error TransferFailed();

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Locks tokens of the caller, who may have one lock at a time.
    /// @param amount Tokens to lock.
    /// @param duration Seconds, from MIN_DURATION to FULL_DURATION.
    function createLock(uint128 amount, uint256 duration) external {
        require(amount > 0, "nothing locked");
        if (locks[msg.sender].amount != 0) revert LockExists();
        if (duration < MIN_DURATION || duration > FULL_DURATION) revert DurationOutOfRange(duration);

        uint256 weight = weightOf(amount, duration);
        uint40 unlockAt = uint40(block.timestamp + duration);
        locks[msg.sender] = Lock(amount, unlockAt, weight, rewardIndex);
        totalWeight += weight;
        emit LockCreated(msg.sender, amount, unlockAt, weight);
        if (!token.transferFrom(msg.sender, address(this), amount)) revert TransferFailed();
    }

    /// @notice Returns the caller's tokens once the lock has run out, with the rewards earned.
    function withdraw() external {
        Lock memory lock = locks[msg.sender];
        if (lock.amount == 0) revert NoLock();
        if (block.timestamp < lock.unlockAt) revert StillLocked(lock.unlockAt);
        uint256 rewards = pendingRewards(msg.sender);
        delete locks[msg.sender];
        totalWeight -= lock.weight;
        emit RewardsClaimed(msg.sender, rewards);
        emit Withdrawn(msg.sender, lock.amount);
        if (!token.transfer(msg.sender, lock.amount + rewards)) revert TransferFailed();
    }

    /// @notice Pays the rewards earned so far and keeps the lock.
    function claim() external {
        uint256 rewards = pendingRewards(msg.sender);
        locks[msg.sender].paidIndex = rewardIndex;
        emit RewardsClaimed(msg.sender, rewards);
        if (!token.transfer(msg.sender, rewards)) revert TransferFailed();
    }

    /// @notice Distributes tokens of the caller over all locks by weight.
    function distribute(uint256 amount) external {
        require(totalWeight > 0, "no locks");
        rewardIndex += (amount * PRECISION) / totalWeight;
        emit RewardsDistributed(msg.sender, amount);
        if (!token.transferFrom(msg.sender, address(this), amount)) revert TransferFailed();
    }

    /// @notice Rewards that an account could claim now.
    function pendingRewards(address account) public view returns (uint256) {
        Lock storage lock = locks[account];
        return (lock.weight * (rewardIndex - lock.paidIndex)) / PRECISION;
    }

    /// @notice Weight of a lock: the amount, plus up to three times as much for a long duration.
    function weightOf(uint256 amount, uint256 duration) public pure returns (uint256) {
        uint256 counted = duration > FULL_DURATION ? FULL_DURATION : duration;
        return amount + (3 * amount * counted) / FULL_DURATION;
    }
}
