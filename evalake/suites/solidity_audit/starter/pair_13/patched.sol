// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
}

/// @title PocketWallet
/// @notice Wallet of one person, with a daily limit that the owner can change after a waiting time.
contract PocketWallet {
    uint256 public constant LIMIT_DELAY = 2 days;

    address public immutable owner;
    uint256 public dailyLimit;
    uint256 public pendingLimit;
    uint256 public pendingLimitAt;
    uint256 public currentDay;
    uint256 public spentToday;

    event Received(address indexed from, uint256 amount);
    event Sent(address indexed to, uint256 amount);
    event TokenSent(address indexed token, address indexed to, uint256 amount);
    event LimitAnnounced(uint256 limit, uint256 effectiveAt);
    event LimitChanged(uint256 limit);

    error NotOwner(address caller);
    error LimitExceeded(uint256 requested, uint256 left);

    constructor(address owner_, uint256 dailyLimit_) {
        require(owner_ != address(0), "zero owner");
        owner = owner_;
        dailyLimit = dailyLimit_;
    }

    receive() external payable {
        emit Received(msg.sender, msg.value);
    }

    /// @notice Sends ether within the daily limit.
    function send(address payable to, uint256 amount) external {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        _spend(amount);
        emit Sent(to, amount);
        (bool ok, ) = to.call{value: amount}("");
        require(ok, "transfer failed");
    }

    /// @notice Sends tokens; the daily limit concerns ether only.
    function sendToken(IERC20 token, address to, uint256 amount) external {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        emit TokenSent(address(token), to, amount);
        require(token.transfer(to, amount), "transfer failed");
    }

    /// @notice Announces a new daily limit, which can be put in force after the waiting time.
    function announceLimit(uint256 limit) external {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        pendingLimit = limit;
        pendingLimitAt = block.timestamp + LIMIT_DELAY;
        emit LimitAnnounced(limit, pendingLimitAt);
    }

    /// @notice Puts the announced limit in force.
    function applyLimit() external {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        require(pendingLimitAt != 0 && block.timestamp >= pendingLimitAt, "waiting time");
        dailyLimit = pendingLimit;
        pendingLimitAt = 0;
        emit LimitChanged(dailyLimit);
    }

    /// @notice Ether that may still be sent today, in wei.
    function leftToday() public view returns (uint256) {
        if (block.timestamp / 1 days != currentDay) {
            return dailyLimit;
        }
        return spentToday >= dailyLimit ? 0 : dailyLimit - spentToday;
    }

    function _spend(uint256 amount) private {
        uint256 left = leftToday();
        if (amount > left) revert LimitExceeded(amount, left);
        uint256 today = block.timestamp / 1 days;
        if (today != currentDay) {
            currentDay = today;
            spentToday = 0;
        }
        spentToday += amount;
    }
}
