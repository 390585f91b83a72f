// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title MillPond
/// @notice Shares at one ether each; income is spread over the shares before every change of them.
contract MillPond {
    uint256 private constant ONE = 1e18;

    uint256 public totalShares;
    uint256 public incomePerShare;
    uint256 public undistributed;
    bool private started;
    mapping(address => uint256) public sharesOf;
    mapping(address => uint256) private paidIndex;
    mapping(address => uint256) public owed;

    event Bought(address indexed account, uint256 shares);
    event Exited(address indexed account, uint256 shares);
    event Income(uint256 amount);

    receive() external payable {
        undistributed += msg.value;
        emit Income(msg.value);
    }

    /// @notice Spreads the income that has come in since the last change.
    function distribute() public {
        if (started) {
            incomePerShare += (undistributed * ONE) / totalShares;
            undistributed = 0;
        }
    }

    function buy() external payable {
        distribute();
        uint256 shares = msg.value / 1 ether;
        require(shares > 0 && msg.value == shares * 1 ether, "whole shares only");
        _settle(msg.sender);
        started = true;
        totalShares += shares;
        sharesOf[msg.sender] += shares;
        emit Bought(msg.sender, shares);
    }

    /// @notice Gives shares back at one ether each.
    function exit(uint256 shares) external {
        distribute();
        _settle(msg.sender);
        sharesOf[msg.sender] -= shares;
        totalShares -= shares;
        owed[msg.sender] += shares * 1 ether;
        emit Exited(msg.sender, shares);
    }

    function collect() external {
        uint256 amount = owed[msg.sender];
        require(amount > 0, "nothing owed");
        owed[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function _settle(address account) private {
        owed[account] += (sharesOf[account] * (incomePerShare - paidIndex[account])) / ONE;
        paidIndex[account] = incomePerShare;
    }
}
