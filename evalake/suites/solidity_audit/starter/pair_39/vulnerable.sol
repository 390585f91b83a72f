// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IFarm {
    /// @notice Sends the profit that has accrued for the caller, in the vault's token.
    /// @return profit Tokens sent.
    function collectProfit() external returns (uint256 profit);
}

/// @title FarmVault
/// @notice Shares in tokens whose profit is collected from a farm now and then.
/// @dev The token takes no transfer fee, calls no hooks and returns true on success.
contract FarmVault {
    uint256 private constant VIRTUAL_SHARES = 1e6;
    uint256 private constant VIRTUAL_ASSETS = 1;

    IERC20 public immutable token;
    IFarm public immutable farm;

    uint256 public totalShares;
    uint256 public managedTokens;
    uint256 public lastHarvestAt;

    mapping(address => uint256) public sharesOf;

    event Deposited(address indexed account, uint256 assets, uint256 shares);
    event Redeemed(address indexed account, uint256 assets, uint256 shares);
    event Harvested(address indexed caller, uint256 profit);
    event SharesMoved(address indexed from, address indexed to, uint256 shares);

    error TooFewShares(uint256 shares);
    error TooFewAssets(uint256 assets);
    error TransferFailed();

    constructor(IERC20 token_, IFarm farm_) {
        token = token_;
        farm = farm_;
        lastHarvestAt = block.timestamp;
    }

    /// @notice Tokens that belong to all shares together.
    function totalAssets() public view returns (uint256) {
        return managedTokens;
    }

    /// @notice Shares for an amount of tokens, rounded down.
    function toShares(uint256 assets) public view returns (uint256) {
        return (assets * (totalShares + VIRTUAL_SHARES)) / (totalAssets() + VIRTUAL_ASSETS);
    }

    /// @notice Tokens for a number of shares, rounded down.
    function toAssets(uint256 shares) public view returns (uint256) {
        return (shares * (totalAssets() + VIRTUAL_ASSETS)) / (totalShares + VIRTUAL_SHARES);
    }

    /// @notice Deposits tokens of the caller.
    /// @param minShares Fewest shares that the caller accepts.
    function deposit(uint256 assets, uint256 minShares) external returns (uint256 shares) {
        shares = toShares(assets);
        if (shares == 0 || shares < minShares) revert TooFewShares(shares);
        totalShares += shares;
        managedTokens += assets;
        sharesOf[msg.sender] += shares;
        emit Deposited(msg.sender, assets, shares);
        if (!token.transferFrom(msg.sender, address(this), assets)) revert TransferFailed();
    }

    /// @notice Burns shares of the caller and pays their value.
    /// @param minAssets Fewest tokens that the caller accepts.
    function redeem(uint256 shares, uint256 minAssets) external returns (uint256 assets) {
        assets = toAssets(shares);
        if (assets == 0 || assets < minAssets) revert TooFewAssets(assets);
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        managedTokens -= assets;
        emit Redeemed(msg.sender, assets, shares);
        if (!token.transfer(msg.sender, assets)) revert TransferFailed();
    }

    /// @notice Collects the farm's profit for the shares.
    function harvest() external returns (uint256 profit) {
        profit = farm.collectProfit();
        managedTokens += profit;
        lastHarvestAt = block.timestamp;
        emit Harvested(msg.sender, profit);
    }

    function transferShares(address to, uint256 shares) external {
        require(to != address(0), "zero address");
        sharesOf[msg.sender] -= shares;
        sharesOf[to] += shares;
        emit SharesMoved(msg.sender, to, shares);
    }
}
