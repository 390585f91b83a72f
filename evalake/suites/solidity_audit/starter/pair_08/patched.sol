// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title YieldVault
/// @notice Issues shares, which do not grow in number, for a token whose balances grow with interest every second.
/// @dev The asset takes no transfer fee, calls no hooks and returns true on success.
contract YieldVault {
    IERC20 public immutable asset;
    uint256 public totalShares;
    mapping(address => uint256) public sharesOf;
    mapping(address => mapping(address => uint256)) public shareAllowance;

    uint256 private constant VIRTUAL_SHARES = 1e6;
    uint256 private constant VIRTUAL_ASSETS = 1;

    event Deposit(address indexed caller, address indexed receiver, uint256 assets, uint256 shares);
    event Redeem(address indexed holder, address indexed receiver, uint256 assets, uint256 shares);
    event ShareTransfer(address indexed from, address indexed to, uint256 shares);
    event ShareApproval(address indexed holder, address indexed spender, uint256 shares);

    constructor(IERC20 asset_) {
        asset = asset_;
    }

    /// @notice Tokens that belong to all shares together.
    function totalAssets() public view returns (uint256) {
        return asset.balanceOf(address(this));
    }

    /// @notice Shares that a deposit of `assets` receives, rounded down.
    function convertToShares(uint256 assets) public view returns (uint256) {
        return (assets * (totalShares + VIRTUAL_SHARES)) / (totalAssets() + VIRTUAL_ASSETS);
    }

    /// @notice Tokens that `shares` are worth, rounded down.
    function convertToAssets(uint256 shares) public view returns (uint256) {
        return (shares * (totalAssets() + VIRTUAL_ASSETS)) / (totalShares + VIRTUAL_SHARES);
    }

    /// @notice Deposits tokens of the caller for shares of the receiver.
    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        require(receiver != address(0), "zero receiver");
        shares = convertToShares(assets);
        require(shares > 0, "deposit too small");
        totalShares += shares;
        sharesOf[receiver] += shares;
        emit Deposit(msg.sender, receiver, assets, shares);
        require(asset.transferFrom(msg.sender, address(this), assets), "transfer failed");
    }

    /// @notice Burns shares of the holder and pays their value to the receiver.
    function redeem(uint256 shares, address receiver, address holder) external returns (uint256 assets) {
        if (msg.sender != holder) {
            shareAllowance[holder][msg.sender] -= shares;
        }
        assets = convertToAssets(shares);
        require(assets > 0, "redemption too small");
        sharesOf[holder] -= shares;
        totalShares -= shares;
        emit Redeem(holder, receiver, assets, shares);
        require(asset.transfer(receiver, assets), "transfer failed");
    }

    function approveShares(address spender, uint256 shares) external {
        shareAllowance[msg.sender][spender] = shares;
        emit ShareApproval(msg.sender, spender, shares);
    }

    function transferShares(address to, uint256 shares) external {
        require(to != address(0), "zero receiver");
        sharesOf[msg.sender] -= shares;
        sharesOf[to] += shares;
        emit ShareTransfer(msg.sender, to, shares);
    }

    /// @notice Value of an account's shares in tokens.
    function assetsOf(address account) external view returns (uint256) {
        return convertToAssets(sharesOf[account]);
    }
}
