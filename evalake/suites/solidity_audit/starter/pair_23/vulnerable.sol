// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title VestingBook
/// @notice Anyone can grant tokens to anyone; a grant is released evenly over its duration.
/// @dev The token takes no transfer fee and returns true on success.
contract VestingBook {
    struct Grant {
        address funder;
        uint256 total;
        uint256 claimed;
        uint256 startsAt;
        uint256 duration;
        bool revoked;
    }

    uint256 public constant MIN_DURATION = 7 days;

    IERC20 public immutable token;
    uint256 public totalGranted;
    uint256 public totalClaimed;

    mapping(address => Grant[]) private grants;

    event GrantCreated(address indexed funder, address indexed beneficiary, uint256 index, uint256 total);
    event GrantRevoked(address indexed beneficiary, uint256 index, uint256 returned);
    event Claimed(address indexed beneficiary, uint256 amount);

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Grants tokens of the caller to a beneficiary, starting now.
    function createGrant(address beneficiary, uint256 total, uint256 duration) external {
        require(beneficiary != address(0), "zero address");
        require(total > 0, "nothing granted");
        require(duration >= MIN_DURATION, "too short");
        grants[beneficiary].push(Grant(msg.sender, total, 0, block.timestamp, duration, false));
        totalGranted += total;
        emit GrantCreated(msg.sender, beneficiary, grants[beneficiary].length - 1, total);
        require(token.transferFrom(msg.sender, address(this), total), "transfer failed");
    }

    /// @notice Stops one of the caller's grants; what has been released so far stays with the beneficiary.
    function revoke(address beneficiary, uint256 index) external {
        Grant storage grant = grants[beneficiary][index];
        require(msg.sender == grant.funder, "not funder");
        require(!grant.revoked, "already revoked");
        uint256 kept = released(beneficiary, index);
        uint256 returned = grant.total - kept;
        grant.revoked = true;
        grant.total = kept;
        emit GrantRevoked(beneficiary, index, returned);
        require(token.transfer(msg.sender, returned), "transfer failed");
    }

    /// @notice Pays everything that the caller's grants have released.
    function claimAll() external {
        uint256 amount = 0;
        uint256 count = grants[msg.sender].length;
        for (uint256 i = 0; i < count; i++) {
            Grant storage grant = grants[msg.sender][i];
            uint256 due = released(msg.sender, i) - grant.claimed;
            grant.claimed += due;
            amount += due;
        }
        require(amount > 0, "nothing due");
        totalClaimed += amount;
        emit Claimed(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Tokens that a grant has released so far, claimed or not.
    function released(address beneficiary, uint256 index) public view returns (uint256) {
        Grant storage grant = grants[beneficiary][index];
        uint256 elapsed = block.timestamp - grant.startsAt;
        if (grant.revoked || elapsed >= grant.duration) {
            return grant.total;
        }
        return (grant.total * elapsed) / grant.duration;
    }

    function grantCount(address beneficiary) external view returns (uint256) {
        return grants[beneficiary].length;
    }

    function grantAt(address beneficiary, uint256 index) external view returns (Grant memory) {
        return grants[beneficiary][index];
    }
}
