// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title BridgeCollection
/// @notice Villagers collect tokens for a footbridge; when the goal is reached the builder is paid.
contract BridgeCollection {
    IERC20 public immutable token;
    address public immutable builder;
    uint256 public immutable goal;
    uint256 public collected;
    bool public closed;
    mapping(address => uint256) public givenBy;

    event Given(address indexed villager, uint256 amount);
    event TakenBack(address indexed villager, uint256 amount);
    event Closed(uint256 amount);

    constructor(IERC20 token_, address builder_, uint256 goal_) {
        require(builder_ != address(0) && goal_ > 0, "bad terms");
        token = token_;
        builder = builder_;
        goal = goal_;
    }

    function give(uint256 amount) external {
        require(!closed, "closed");
        require(amount > 0 && collected < goal, "goal reached");
        givenBy[msg.sender] += amount;
        collected += amount;
        emit Given(msg.sender, amount);
        require(token.transferFrom(msg.sender, address(this), amount), "transfer failed");
    }

    /// @notice Takes a gift back while the goal has not been reached.
    function takeBack(uint256 amount) external {
        require(!closed && collected < goal, "goal reached");
        givenBy[msg.sender] -= amount;
        collected -= amount;
        emit TakenBack(msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Pays the builder.
    function close() external {
        require(!closed && collected >= goal, "goal not reached");
        require(token.balanceOf(address(this)) >= collected, "not covered");
        closed = true;
        emit Closed(collected);
        require(token.transfer(builder, collected), "transfer failed");
    }
}
