// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title ApprenticeVesting
/// @notice Tokens for apprentices: nothing before the cliff, then in proportion to the time since the start.
contract ApprenticeVesting {
    struct Grant {
        uint256 total;
        uint256 claimed;
        uint256 start;
        uint256 cliff;
        uint256 duration;
    }

    IERC20 public immutable token;
    address public immutable workshop;
    mapping(address => Grant) public grants;

    event Granted(address indexed apprentice, uint256 total);
    event Claimed(address indexed apprentice, uint256 amount);

    constructor(IERC20 token_) {
        token = token_;
        workshop = msg.sender;
    }

    /// @notice Grants tokens of the workshop.
    /// @param cliff Seconds from the start during which nothing can be claimed.
    /// @param duration Seconds from the start after which everything can be claimed.
    function grant(address apprentice, uint256 total, uint256 cliff, uint256 duration) external {
        require(msg.sender == workshop, "not workshop");
        require(grants[apprentice].total == 0, "already granted");
        require(total > 0 && duration > 0 && cliff <= duration, "bad terms");
        grants[apprentice] = Grant(total, 0, block.timestamp, cliff, duration);
        emit Granted(apprentice, total);
        require(token.transferFrom(workshop, address(this), total), "transfer failed");
    }

    /// @notice What an apprentice may have claimed by now.
    function releasable(address apprentice) public view returns (uint256) {
        Grant storage g = grants[apprentice];
        if (g.total == 0 || block.timestamp < g.start + g.cliff) {
            return 0;
        }
        uint256 elapsed = block.timestamp - g.start;
        return elapsed >= g.duration ? g.total : (g.total * elapsed) / g.duration;
    }

    function claim() external {
        uint256 amount = releasable(msg.sender) - grants[msg.sender].claimed;
        require(amount > 0, "nothing to claim");
        grants[msg.sender].claimed += amount;
        emit Claimed(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }
}
