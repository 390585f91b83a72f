// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title MeadowRewards
/// @notice Members hold shares that the warden hands out; rewards are spread over all shares by an index.
contract MeadowRewards {
    uint256 private constant ONE = 1e6;

    IERC20 public immutable token;
    address public immutable warden;
    uint256 public totalShares;
    uint256 public index;
    uint256 public leftOver;
    uint256 public totalRewarded;
    mapping(address => uint256) public sharesOf;
    mapping(address => uint256) private paidIndex;
    mapping(address => uint256) public owed;

    event SharesSet(address indexed member, uint256 shares);
    event Rewarded(uint256 amount, uint256 index);
    event Claimed(address indexed member, uint256 amount);

    constructor(IERC20 token_) {
        token = token_;
        warden = msg.sender;
    }

    function setShares(address member, uint256 shares) external {
        require(msg.sender == warden, "not warden");
        _settle(member);
        totalShares = totalShares - sharesOf[member] + shares;
        sharesOf[member] = shares;
        emit SharesSet(member, shares);
    }

    /// @notice Spreads tokens of the caller over all shares.
    function addRewards(uint256 amount) external {
        require(totalShares > 0 && amount > 0, "nothing to spread");
        totalRewarded += amount;
        uint256 scaled = amount * ONE + leftOver;
        index += scaled / totalShares;
        leftOver = scaled % totalShares;
        emit Rewarded(amount, index);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Pays the caller's rewards.
    function claim() external {
        _settle(msg.sender);
        uint256 amount = owed[msg.sender];
        require(amount > 0, "nothing owed");
        owed[msg.sender] = 0;
        emit Claimed(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    function _settle(address member) private {
        owed[member] += (sharesOf[member] * (index - paidIndex[member])) / ONE;
        paidIndex[member] = index;
    }
}
