// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title VoucherOffice
/// @notice Vouchers are bought for ether and either redeemed for ether again or exchanged for points.
contract VoucherOffice {
    uint256 public constant PRICE = 0.1 ether;
    uint256 public constant POINTS_PER_VOUCHER = 120;

    bool private redeeming;
    bool private exchanging;
    mapping(address => uint256) public vouchers;
    mapping(address => uint256) public points;
    mapping(address => uint256) public spentPoints;
    uint256 public outstanding;

    event Bought(address indexed account, uint256 count);
    event Redeemed(address indexed account, uint256 count);
    event Exchanged(address indexed account, address indexed receiver, uint256 count);

    modifier redeemLock() {
        require(!redeeming, "busy");
        redeeming = true;
        _;
        redeeming = false;
    }

    modifier exchangeLock() {
        require(!exchanging, "busy");
        exchanging = true;
        _;
        exchanging = false;
    }

    function buy(uint256 count) external payable {
        require(msg.value == count * PRICE, "wrong price");
        vouchers[msg.sender] += count;
        outstanding += count;
        emit Bought(msg.sender, count);
    }

    /// @notice Returns the price of vouchers.
    function redeem(uint256 count) external redeemLock {
        require(vouchers[msg.sender] >= count && count > 0, "too few vouchers");
        (bool sent, ) = msg.sender.call{value: count * PRICE}("");
        require(sent, "transfer failed");
        vouchers[msg.sender] = vouchers[msg.sender] > count ? vouchers[msg.sender] - count : 0;
        outstanding -= outstanding > count ? count : outstanding;
        emit Redeemed(msg.sender, count);
    }

    /// @notice Turns vouchers into points of an account.
    function exchange(uint256 count, address receiver) external exchangeLock {
        vouchers[msg.sender] -= count;
        outstanding -= count;
        points[receiver] += count * POINTS_PER_VOUCHER;
        emit Exchanged(msg.sender, receiver, count);
    }

    /// @notice Spends points of the caller.
    function spend(uint256 amount) external {
        points[msg.sender] -= amount;
        spentPoints[msg.sender] += amount;
    }
}
