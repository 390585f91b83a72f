// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title BeehiveShares
/// @notice Transferable shares of staked tokens; a second token is paid out to holders by shares held.
contract BeehiveShares {
    uint256 private constant ONE = 1e18;

    IERC20 public immutable stakeToken;
    IERC20 public immutable honey;
    uint256 public totalShares;
    uint256 public honeyPerShare;
    mapping(address => uint256) public sharesOf;
    mapping(address => uint256) public rewardDebt;

    event Staked(address indexed account, uint256 amount);
    event Unstaked(address indexed account, uint256 amount);
    event HoneyPaid(address indexed account, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 shares);

    constructor(IERC20 stakeToken_, IERC20 honey_) {
        stakeToken = stakeToken_;
        honey = honey_;
    }

    function stake(uint256 amount) external {
        _settle(msg.sender);
        sharesOf[msg.sender] += amount;
        totalShares += amount;
        _mark(msg.sender);
        emit Staked(msg.sender, amount);
        require(stakeToken.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    function unstake(uint256 amount) external {
        _settle(msg.sender);
        sharesOf[msg.sender] -= amount;
        totalShares -= amount;
        _mark(msg.sender);
        emit Unstaked(msg.sender, amount);
        require(stakeToken.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Pays the caller's honey.
    function claim() external {
        _settle(msg.sender);
        _mark(msg.sender);
    }

    /// @notice Moves shares, with the stake behind them, to another account.
    function transfer(address to, uint256 shares) external returns (bool) {
        require(to != address(0) && to != msg.sender, "bad recipient");
        sharesOf[msg.sender] -= shares;
        sharesOf[to] += shares;
        emit Transfer(msg.sender, to, shares);
        return true;
    }

    /// @notice Shares out honey among all shares.
    function addHoney(uint256 amount) external {
        require(totalShares > 0, "no shares");
        honeyPerShare += (amount * ONE) / totalShares;
        require(honey.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Honey that an account could claim now.
    function pending(address account) public view returns (uint256) {
        uint256 earned = (sharesOf[account] * honeyPerShare) / ONE;
        return earned > rewardDebt[account] ? earned - rewardDebt[account] : 0;
    }

    function _settle(address account) private {
        uint256 amount = pending(account);
        if (amount > 0) {
            rewardDebt[account] += amount;
            emit HoneyPaid(account, amount);
            require(honey.transfer(account, amount), "transfer failed");
        }
    }

    function _mark(address account) private {
        rewardDebt[account] = (sharesOf[account] * honeyPerShare) / ONE;
    }
}
